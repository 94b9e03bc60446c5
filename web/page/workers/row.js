// One worker in the list.
import { post, put, remove } from "../common/api.js";
import { Menu } from "../common/menu.js";
import { State } from "../common/states.js";
import { attempt } from "../common/toasts.js";
import { html } from "../common/view.js";
import { ago, speed } from "../common/words.js";
import { gpu, pools } from "./capabilities.js";

const REVOKE = {
  title: "Revoke this worker?",
  verb: "Revoke",
  remote: "Its keys stop working at once and for good, and what it holds goes to others. A new key lets it in again.",
  local: "It gets no more work from its next beat on, and what it holds goes to others. Enable lets it in again.",
};
const FORGET = { title: "Forget this worker?", verb: "Forget", words: "It goes from the list, with its keys. What it has made stays." };
const SET_ASIDE = "set aside: a test of its own failed";

export function Row({ one, now, reload, look, ask }) {
  const state = one.revoked_at ? "revoked" : one.quarantined_at && one.status !== "disabled" ? "quarantined" : one.status;
  // A worker is idle while a slot is free, whatever it does in the others.
  const isAtWork = state === "idle" && one.current_video_id;
  const device = gpu(one.capabilities);
  const nothing = html`<span class="muted">–</span>`;
  return html`<tr>
    <td class="of-worker"><span class="worker-name"><b>${one.worker_name ?? one.worker_id.slice(0, 8)}</b><small>${one.worker_type}</small></span></td>
    <td data-head="State"><${State} of=${isAtWork ? "busy" : state} word=${isAtWork ? "at work" : state === "quarantined" ? "set aside" : state} /></td>
    <td data-head="Pools"><${Pools} one=${one} /></td>
    <td data-head="At work on">${one.current_video_id ? html`<a href="#/videos/${one.current_video_id}">video ${one.current_video_id}</a>` : nothing}</td>
    <td data-head="Speed"><${Speed} one=${one} /></td>
    <td data-head="GPU">${device ?? nothing}</td>
    <td data-head="Version" class="mono version" title=${one.version}>${one.version ?? "–"}</td>
    <td data-head="Last heard"><time datetime=${one.last_heartbeat} title=${one.last_heartbeat}>${ago(one.last_heartbeat, now)}</time></td>
    <td class="number of-actions"><${Menu} label="Actions for ${one.worker_name ?? one.worker_id}" icon="more" items=${deeds(one, reload, look, ask)} kind="plain-button" /></td>
  </tr>`;
}

function deeds(one, reload, look, ask) {
  const act = (work, done) => attempt(work, done).then(reload);
  const at = `/api/workers/${encodeURIComponent(one.worker_id)}`;
  const off = one.status === "disabled" || one.revoked_at;
  const remote = one.worker_type === "remote"; // comes in by its keys only
  return [
    { label: "Look closer", act: look },
    remote && { label: "New key", act: () => attempt(() => post(`${at}/keys`, {})).then((given) => given && ask(given)) },
    off
      ? !(remote && one.revoked_at) && { label: "Enable", act: () => act(() => put(`${at}/enable`), "It may work again.") }
      : { label: "Disable", act: () => act(() => put(`${at}/disable`), "It gets no more work, and hands back what it has.") },
    !one.revoked_at && {
      label: "Revoke …",
      danger: true,
      act: () => ask({ ...REVOKE, words: remote ? REVOKE.remote : REVOKE.local, act: () => act(() => post(`${at}/revoke`), "It is shut out.") }),
    },
    { label: "Forget …", danger: true, act: () => ask({ ...FORGET, act: () => act(() => remove(at), "It is forgotten.") }) },
  ].filter(Boolean);
}

function Pools({ one }) {
  const { capabilities: can, pools_aside: aside = [] } = one;
  if (!pools(can).length) return html`<span class="muted">–</span>`;
  return html`<span class="pools">${pools(can).map((pool) => {
    const out = aside.includes(pool);
    return html`<span key=${pool} class=${out ? "is-aside" : ""} title=${out ? SET_ASIDE : undefined}>${pool}${Number(can.slots?.[pool]) ? ` ${Number(can.slots[pool])}` : ""}
      ${out && html`<span class="hidden">, ${SET_ASIDE}</span>`}</span>`;
  })}</span>`;
}

/** Now, or as it was the last time, which is said. */
function Speed({ one }) {
  const now = speed(one.speed);
  if (now) return html`<b title="Seconds of video that it encodes in a second">${now}</b>`;
  const last = speed(one.last_speed);
  return html`<span class="muted" title=${last ? "Its last encode" : "It has not encoded anything yet"}>${last ? `${last} last` : "–"}</span>`;
}

export function Ghost({ cells }) {
  return html`<tr class="ghost" aria-hidden="true">${Array.from({ length: cells }, (_, index) => html`<td key=${index}><i class="line"></i></td>`)}</tr>`;
}
