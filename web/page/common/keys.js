// Keys for the whole page, and the list of them.
import { Dialog } from "./dialog.js";
import { go } from "./router.js";
import { allowSingleKeys, singleKeys } from "./single_keys.js";
import { store } from "./store.js";
import { html, useStore } from "./view.js";

const shown = store(false);
const LIST = [
  ["/", "Search the library"],
  ["u", "Upload"],
  ["g l", "Library"],
  ["g w", "Workers"],
  ["g q", "Queues"],
  ["← → ↑ ↓", "Move between videos"],
  ["Space or k", "Play or pause"],
  ["j l, ← →", "Back and forth, ten and five seconds"],
  ["m, c, f", "Sound, captions, full screen"],
  ["0 – 9", "Jump to a tenth of the video"],
  ["?", "These keys"],
];
const SECOND_MS = 1000; // a second key that comes later is a first one
let awaiting = "";
let since = 0;

export function listenToKeys() {
  // Before anybody else: the second of two keys (`g l`) is not the player's.
  addEventListener("keydown", (event) => {
    const at = /** @type {HTMLElement} */ (event.target);
    if (!singleKeys.get()) return;
    if (event.ctrlKey || event.metaKey || event.altKey || at.closest("input, textarea, select, dialog")) return;
    const pressed = (event.timeStamp - since < SECOND_MS ? awaiting : "") + event.key;
    awaiting = "";
    if (pressed === "/") focusSearch();
    else if (pressed === "u") go("upload");
    else if (pressed === "?") showKeys();
    else if (pressed === "gl") go("");
    else if (pressed === "gw") go("workers");
    else if (pressed === "gq") go("queues");
    else {
      if (pressed === "g") [awaiting, since] = ["g", event.timeStamp];
      return;
    }
    event.preventDefault();
  }, true);
}

function focusSearch() {
  const find = () => /** @type {HTMLInputElement | null} */ (document.querySelector("input[type=search]"));
  if (!find()) go("");
  requestAnimationFrame(() => find()?.focus());
}

export const showKeys = () => shown.set(true);

export function Keys() {
  const on = useStore(singleKeys);
  if (!useStore(shown)) return null;
  return html`<${Dialog} title="Keys" close=${() => shown.set(false)}>
    <dl class="keys">
      ${LIST.map(([keys, what]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${what}</dd></div>`)}
    </dl>
    <label class="check"><input type="checkbox" checked=${on} onChange=${(event) => allowSingleKeys(event.target.checked)} /> Use these keys</label>
  <//>`;
}
