// Who encodes: what each does, how fast, and what one may do with it.
import { useNow } from "../common/asking.js";
import { Sure } from "../common/dialog.js";
import { Broken, Empty } from "../common/states.js";
import { html, useState } from "../common/view.js";
import { many, speed } from "../common/words.js";
import { Detail } from "./detail.js";
import { useWorkers } from "./list.js";
import { Key, Register } from "./register.js";
import { Ghost, Row } from "./row.js";

const HEADS = ["Worker", "State", "Pools", "At work on", "Speed", "GPU", "Version", "Last heard"];

export function Workers() {
  const { workers, error, reload } = useWorkers();
  const [asked, setAsked] = useState(/** @type {any} */ (null));
  const now = useNow(1000);
  if (error && !workers) return html`<${Broken} error=${error} again=${reload} />`;
  return html`<section aria-label="Workers" aria-busy=${!workers}>
    <div class="page-head">
      <h1>Workers</h1>
      <span class="muted">${workers ? summary(workers) : ""}</span>
      <button class="button" onClick=${() => setAsked("register")}>Register a worker</button>
    </div>
    ${error && html`<p class="note bad" role="alert">${error.message}</p>`}
    ${workers?.length === 0 && html`<${Empty} title="No workers" icon="workers"><p>Start one with <code>vlog worker</code>; it registers itself.</p><//>`}
    ${(!workers || workers.length > 0) &&
    html`<div class="panel table-box workers" tabindex="0" role="region" aria-label="List of workers"><table>
      <thead><tr>${HEADS.map((head) => html`<th key=${head}>${head}</th>`)}<th><span class="hidden">Actions</span></th></tr></thead>
      <tbody>${workers
        ? workers.map((one) => html`<${Row} key=${one.worker_id} one=${one} now=${now} reload=${reload} look=${() => setAsked(one)} ask=${setAsked} />`)
        : [0, 1].map((key) => html`<${Ghost} key=${key} cells=${HEADS.length + 1} />`)}</tbody>
    </table></div>`}
    ${asked === "register" && html`<${Register} close=${() => (setAsked(null), reload())} />`}
    ${asked?.verb && html`<${Sure} ...${asked} close=${() => setAsked(null)}>${asked.words}<//>`}
    ${asked?.api_key && html`<${Key} given=${asked} close=${() => (setAsked(null), reload())} />`}
    ${asked?.worker_id && !asked.api_key && html`<${Detail} id=${asked.worker_id} close=${() => setAsked(null)} />`}
  </section>`;
}

function summary(workers) {
  const there = workers.filter((one) => ["idle", "busy", "active"].includes(one.status)).length;
  const together = workers.reduce((sum, one) => sum + (one.speed ?? 0), 0);
  return [`${there} of ${many(workers.length, "worker")} there`, together && `${speed(together)} together`].filter(Boolean).join(", ");
}
