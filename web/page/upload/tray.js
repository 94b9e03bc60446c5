// Uploads stay in sight while one looks at something else.
import { Icon } from "../common/icons.js";
import { route } from "../common/router.js";
import { html, useStore } from "../common/view.js";
import { many } from "../common/words.js";
import { Transfer } from "./transfer.js";
import { clearDone, transfers } from "./transfers.js";

export function Tray() {
  const all = useStore(transfers);
  const here = useStore(route).path[0];
  if (!all.length || here === "upload") return null;
  const open = all.filter((one) => one.state !== "done");
  return html`<aside class="panel tray" aria-label="Uploads">
    <header>
      <h2>${open.length ? many(open.length, "upload") : "Uploaded"}</h2>
      ${!open.length && html`<button class="plain-button" aria-label="Close" onClick=${clearDone}><${Icon} name="close" size=${16} /></button>`}
    </header>
    <ul class="transfers">${all.map((one) => html`<${Transfer} key=${one.id} one=${one} />`)}</ul>
  </aside>`;
}
