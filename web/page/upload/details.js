// Whose the next uploads are, remembered from one time to the next.
import { store } from "../common/store.js";
import { TIERS } from "../common/tiers.js";

export { TIERS };
const KEPT = "vlog.upload";

function before() {
  try {
    const { owner = "", tier = "free" } = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    return { owner: String(owner), tier: TIERS.includes(tier) ? tier : "free" };
  } catch {
    return { owner: "", tier: "free" };
  }
}

export const details = store({ title: "", ...before() });

export function setDetails(news) {
  details.set({ ...details.get(), ...news });
  const { owner, tier } = details.get();
  try {
    localStorage.setItem(KEPT, JSON.stringify({ owner, tier }));
  } catch {
    // It then holds until the page is closed.
  }
}

/** Give what goes with files that were chosen now; a title is for one time only. */
export function takeDetails() {
  const taken = details.get();
  details.set({ ...taken, title: "" });
  return taken;
}
