// What a worker says it can do. These are its own words, and a remote one may say anything. Pure.

/** @returns {any[]} */
function several(told) {
  if (Array.isArray(told)) return told;
  return told && typeof told === "object" ? Object.values(told) : told ? [told] : [];
}

const word = (told) => (typeof told === "object" ? "" : String(told).slice(0, 60));

export function pools(can) {
  return several(can?.pools).map(word).filter(Boolean);
}

export function encoders(can) {
  return several(can?.encoders).map(word).filter(Boolean);
}

export function ffmpegs(can) {
  return several(can?.ffmpeg)
    .map((one) => word(one?.version ?? one))
    .filter(Boolean);
}

/** "NVIDIA, /dev/nvidia0"; null where there is none. */
export function gpu(can) {
  const found = can?.gpu;
  if (!found || typeof found !== "object") return found ? word(found) : null;
  const device = word(found.device ?? "");
  return [word(found.vendor ?? found.name ?? ""), device === "the first" ? "" : device].filter(Boolean).join(", ") || "yes";
}
