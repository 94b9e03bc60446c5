// Whether a letter alone does something: who dictates, or types with an unsteady hand, can do without (WCAG 2.1.4).
import { store } from "./store.js";

const KEPT = "vlog.keys";

function before() {
  try {
    return localStorage.getItem(KEPT) !== "off";
  } catch {
    return true;
  }
}

export const singleKeys = store(before());

export function allowSingleKeys(on) {
  singleKeys.set(on);
  try {
    localStorage.setItem(KEPT, on ? "on" : "off");
  } catch {
    // It then holds until the page is closed.
  }
}
