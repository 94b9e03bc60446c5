// What one may do with a video, as its state allows.
import { post, remove } from "../common/api.js";
import { copy } from "../common/copying.js";
import { Dialog, Sure } from "../common/dialog.js";
import { Icon } from "../common/icons.js";
import { Menu } from "../common/menu.js";
import { go } from "../common/router.js";
import { TIERS } from "../common/tiers.js";
import { attempt, say } from "../common/toasts.js";
import { html, useState, useStore } from "../common/view.js";
import { forget, refresh } from "../library/list.js";
import { Retranscode } from "./retranscode.js";
import { about, workflowUrl } from "./about.js";

const ENDED = ["completed", "failed", "cancelled"];

export function Actions({ video, job, progress, reload }) {
  const [asked, setAsked] = useState("");
  const known = useStore(about);
  const state = progress?.state ?? job?.state;
  const ended = ENDED.includes(state);
  const close = () => setAsked("");
  const act = (work, done) => attempt(work, done).then(reload);
  const onJob = (verb, done, body) => act(() => post(`/api/jobs/${job.job_id}/${verb}`, body), done);

  const canRetry = ended && (video.status === "failed" || video.missing.length > 0);
  const temporal = workflowUrl(known, job?.workflow_id);
  const items = [
    ended && { label: "Make it anew …", act: () => setAsked("retranscode") },
    !ended && job && { label: "Change tier …", act: () => setAsked("tier") },
    temporal && { label: "Workflow in Temporal", href: temporal },
    video.stream_url && { label: "Copy HLS address", act: () => share(new URL(video.stream_url, location.href).href) },
    { label: "Delete …", danger: true, act: () => setAsked("delete") },
  ].filter(Boolean);
  return html`<div class="actions">
    ${!ended && job && state !== "paused" && html`<button class="button" onClick=${() => onJob("pause", "Paused.")}><${Icon} name="pause" />Pause</button>`}
    ${state === "paused" && html`<button class="button primary" onClick=${() => onJob("resume", "It goes on.")}><${Icon} name="play" size=${15} />Resume</button>`}
    ${!ended && job && html`<button class="button" onClick=${() => setAsked("cancel")}>Cancel</button>`}
    ${canRetry && html`<button class="button primary" onClick=${() => act(() => post(`/api/videos/${video.video_id}/retry`), "It is tried again.")}><${Icon} name="retry" size=${16} />Retry</button>`}
    <div class="at-end"><${Menu} label="More" icon="more" items=${items} /></div>
    ${asked === "cancel" &&
    html`<${Sure} title="Cancel this job?" verb="Cancel the job" close=${close} act=${() => onJob("cancel", "It is being cancelled.")}>
      Its encoders stop at once, and what it has made so far is removed. The source is kept: it can be tried again.<//>`}
    ${asked === "delete" &&
    html`<${Sure} title="Delete this video?" verb="Delete" close=${close} act=${() => erase(video)}>
      It stops playing at once. It can be restored under the same address for some time.<//>`}
    ${asked === "tier" && html`<${Tier} job=${job} close=${close} change=${(tier) => onJob("priority", `Its tier is ${tier}.`, { tier })} />`}
    ${asked === "retranscode" && html`<${Retranscode} video=${video} close=${close} reload=${reload} />`}
  </div>`;
}

function Tier({ job, close, change }) {
  const [tier, setTier] = useState(job.tier);
  return html`<${Dialog} title="Change tier" close=${close}>
    <label class="field"><span>Tier</span>
      <select value=${tier} onChange=${(event) => setTier(event.target.value)}>
        ${TIERS.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
      <small>Lower tiers wait for higher ones. What of it waits in a queue is moved; what runs goes on.</small>
    </label>
    <footer>
      <button class="button" onClick=${close}>Back</button>
      <button class="button primary" onClick=${() => (close(), change(tier))}>Change</button>
    </footer>
  <//>`;
}

async function erase({ video_id: id, title }) {
  const gone = await attempt(() => remove(`/api/videos/${id}`));
  if (!gone) return;
  forget(id);
  go("");
  const back = () => attempt(() => post(`/api/videos/${id}/restore`), "It is back.").then(refresh);
  say(`“${title}” is deleted.`, { action: "Undo", act: back });
}

function share(address) {
  copy(address, `It is ${address}`).then(say);
}
