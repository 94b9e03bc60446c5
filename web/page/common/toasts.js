// Short messages at the edge of the page: what was done, what could not be, and a way back.
import { Icon } from "./icons.js";
import { store } from "./store.js";
import { html, useStore } from "./view.js";

const SHOWN_MS = 7000;
const toasts = store(/** @type {{id: number, text: string, kind: string, action?: string, act?: () => void}[]} */ ([]));
let number = 0;

/**
 * @param {string} text
 * @param {{kind?: string, action?: string, act?: () => void}} [options]
 */
export function say(text, { kind = "calm", action, act } = {}) {
  number += 1;
  const id = number;
  toasts.set([...toasts.get().slice(-2), { id, text, kind, action, act }]);
  setTimeout(() => hush(id), SHOWN_MS);
}

/** Do something that may fail, and say so when it does. */
export async function attempt(work, done) {
  try {
    const result = await work();
    if (done) say(typeof done === "function" ? done(result) : done);
    return result;
  } catch (error) {
    say(error.message, { kind: "bad" });
    return undefined;
  }
}

function hush(id) {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">
    ${useStore(toasts).map(
      (toast) => html`<div class="toast ${toast.kind}" key=${toast.id}>
        <span>${toast.text}</span>
        ${toast.act &&
        html`<button class="button small" onClick=${() => (hush(toast.id), toast.act?.())}>${toast.action}</button>`}
        <button class="plain-button" aria-label="Close" onClick=${() => hush(toast.id)}><${Icon} name="close" size=${16} /></button>
      </div>`,
    )}
  </div>`;
}
