// Uploads stay in sight while one looks at something else, and out of the way of who folds them.
import { Icon } from "../common/icons.js";
import { route } from "../common/router.js";
import { html, useState, useStore } from "../common/view.js";
import { many, percent } from "../common/words.js";
import { Transfer } from "./transfer.js";
import { clearDone, transfers } from "./transfers.js";

export function Tray() {
  const all = useStore(transfers);
  const here = useStore(route).path[0];
  const [folded, setFolded] = useState(false);
  if (!all.length || here === "upload") return null;
  const open = all.filter((one) => one.state !== "done");
  const failed = all.filter((one) => one.state === "failed").length;
  return html`<aside class="panel tray ${folded ? "is-folded" : ""}" aria-label="Uploads">
    <header>
      <h2>${open.length ? many(open.length, "upload") : "Uploaded"}</h2>
      ${folded && (failed ? html`<span class="bad-text">${failed} failed</span>` : html`<span class="muted">${percent(far(all))}</span>`)}
      <button class="plain-button" aria-label=${folded ? "Unfold" : "Fold"} aria-expanded=${!folded} onClick=${() => setFolded(!folded)}>
        <${Icon} name=${folded ? "up" : "down"} size=${16} /></button>
      ${!open.length && html`<button class="plain-button" aria-label="Close" onClick=${clearDone}><${Icon} name="close" size=${16} /></button>`}
    </header>
    ${!folded && html`<ul class="transfers">${all.map((one) => html`<${Transfer} key=${one.id} one=${one} />`)}</ul>`}
  </aside>`;
}

function far(all) {
  const sum = (name) => all.reduce((total, one) => total + one[name], 0);
  return (100 * sum("sent")) / (sum("size") || 1);
}
