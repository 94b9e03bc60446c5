// Who waits for whom, the first first.
export const TIERS = ["viral", "creator", "hobby", "trial", "free", "bulk"];
