// Numbers and moments as people say them. Pure.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** 75 is "1:15", 3675 is "1:01:15". */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds || 0));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

export function bytes(count) {
  let size = count || 0;
  let unit = 0;
  while (size >= 999.5 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit && size < 99.95 ? size.toFixed(1) : Math.round(size)} ${UNITS[unit]}`;
}

/** How long something takes or took: "0.4 s", "12 s", "3 min", "1 h 20 min". */
export function span(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "–";
  if (seconds < 1) return `${Math.max(0, seconds).toFixed(1)} s`;
  if (seconds < 99.5) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60];
  if (hours < 48) return rest ? `${hours} h ${rest} min` : `${hours} h`;
  return `${Math.round(hours / 24)} days`;
}

export function ago(moment, now = Date.now()) {
  if (!moment) return "never";
  const seconds = (now - Date.parse(moment)) / 1000;
  return seconds < 5 ? "just now" : `${span(seconds)} ago`;
}

/** How fast it is made against how fast it plays: "2.4×". */
export function speed(factor) {
  return factor > 0 && Number.isFinite(factor) ? `${factor < 9.95 ? factor.toFixed(1) : Math.round(factor)}×` : "";
}

export function percent(value) {
  return `${Math.floor(Math.min(100, Math.max(0, value || 0)))}%`;
}

export function many(count, one, more = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
}

export function moment(iso) {
  if (!iso) return "–";
  return new Date(iso).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** `step.handed_back` is "step handed back". */
export function spaced(name) {
  return String(name || "").replace(/[_.:]+/g, " ");
}

/** How an attempt of a step has ended. */
export const OUTCOMES = { completed: "done", running: "at work", partial: "handed back", failed: "failed", cancelled: "cancelled", lost: "its worker vanished" };
