// Who encodes: what each does, and what one may do with it.
import { put, post, remove } from "../common/api.js";
import { useNow } from "../common/asking.js";
import { Menu } from "../common/menu.js";
import { Broken, Empty, State } from "../common/states.js";
import { attempt } from "../common/toasts.js";
import { html, useState } from "../common/view.js";
import { ago, many } from "../common/words.js";
import { Detail } from "./detail.js";
import { useWorkers } from "./list.js";
import { Register } from "./register.js";

export function Workers() {
  const { workers, error, reload } = useWorkers();
  const [asked, setAsked] = useState(/** @type {any} */ (null));
  const now = useNow(1000);
  if (error && !workers) return html`<${Broken} error=${error} again=${reload} />`;
  const alive = workers?.filter((one) => ["idle", "busy", "active"].includes(one.status)).length ?? 0;
  return html`<section aria-label="Workers">
    <div class="page-head">
      <h1>Workers</h1>
      <span class="muted">${workers ? `${alive} of ${many(workers.length, "worker")} there` : ""}</span>
      <button class="button" onClick=${() => setAsked("register")}>Register a worker</button>
    </div>
    ${workers?.length === 0 && html`<${Empty} title="No workers" icon="workers"><p>Start one with <code>vlog worker</code>; it registers itself.</p><//>`}
    ${(!workers || workers.length > 0) &&
    html`<div class="panel table-box" tabindex="0" role="region" aria-label="List of workers"><table>
      <thead><tr><th>Worker</th><th>State</th><th>Pools</th><th>At work on</th><th>GPU</th><th>Version</th><th>Heard of</th><th><span class="hidden">Actions</span></th></tr></thead>
      <tbody>${(workers ?? []).map(
        (one) => html`<${Row} key=${one.worker_id} one=${one} now=${now} reload=${reload} look=${() => setAsked(one)} />`,
      )}</tbody>
    </table></div>`}
    ${asked === "register" && html`<${Register} close=${() => (setAsked(null), reload())} />`}
    ${asked?.worker_id && html`<${Detail} id=${asked.worker_id} close=${() => setAsked(null)} />`}
  </section>`;
}

function Row({ one, now, reload, look }) {
  const { capabilities: can } = one;
  const state = one.revoked_at ? "revoked" : one.quarantined_at && one.status !== "disabled" ? "quarantined" : one.status;
  const act = (work, done) => attempt(work, done).then(reload);
  const at = `/api/workers/${encodeURIComponent(one.worker_id)}`;
  const off = one.status === "disabled" || one.revoked_at;
  const items = [
    { label: "Look closer", act: look },
    off
      ? { label: "Enable", act: () => act(() => put(`${at}/enable`), "It may work again.") }
      : { label: "Disable", act: () => act(() => put(`${at}/disable`), "It gets no more work, and hands back what it has.") },
    !one.revoked_at && { label: "Revoke", danger: true, act: () => act(() => post(`${at}/revoke`), "It is shut out.") },
    { label: "Forget", danger: true, act: () => act(() => remove(at), "It is forgotten.") },
  ].filter(Boolean);
  return html`<tr>
    <td><span class="worker-name"><b>${one.worker_name ?? one.worker_id.slice(0, 8)}</b><small>${one.worker_type}</small></span></td>
    <td><${State} of=${state} word=${state === "quarantined" ? "set aside" : state} /></td>
    <td><span class="pools">${(can?.pools ?? []).map((pool) => html`<span key=${pool}>${pool}${can.slots?.[pool] ? ` ${can.slots[pool]}` : ""}</span>`)}</span></td>
    <td>${one.current_video_id ? html`<a href="#/videos/${one.current_video_id}">video ${one.current_video_id}</a>` : html`<span class="muted">–</span>`}</td>
    <td>${gpu(can) ?? html`<span class="muted">none</span>`}</td>
    <td class="mono">${one.version ?? "–"}</td>
    <td><time datetime=${one.last_heartbeat} title=${one.last_heartbeat}>${ago(one.last_heartbeat, now)}</time></td>
    <td class="number"><${Menu} label="Actions for ${one.worker_name ?? one.worker_id}" icon="more" items=${items} kind="plain-button" /></td>
  </tr>`;
}

function gpu(can) {
  const found = can?.gpu;
  if (!found) return null;
  return String(found.name ?? found.device ?? found.api ?? (can.encoders ?? []).join(", ")).slice(0, 40);
}
