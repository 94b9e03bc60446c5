// One worker, closer: where it runs, its keys, what it did last.
import { useAsked } from "../common/asking.js";
import { Dialog } from "../common/dialog.js";
import { Broken, State } from "../common/states.js";
import { html } from "../common/view.js";
import { ago, bytes, OUTCOMES, span, speed } from "../common/words.js";
import { encoders, ffmpegs, gpu } from "./capabilities.js";

export function Detail({ id, close }) {
  const { data, error } = useAsked(`/api/workers/${encodeURIComponent(id)}`);
  return html`<${Dialog} title=${data?.worker_name ?? "Worker"} close=${close}>
    ${error && html`<${Broken} error=${error} />`}
    ${data && html`<${Facts} worker=${data} /><${Steps} steps=${data.steps} />`}
  <//>`;
}

function Facts({ worker }) {
  const can = worker.capabilities;
  const facts = [
    ["id", worker.worker_id],
    ["registered", ago(worker.registered_at)],
    ["cores", Number(can.cores) || ""],
    ["memory", Number(can.memory_bytes) ? bytes(Number(can.memory_bytes)) : ""],
    ["speed", [speed(worker.speed) && `${speed(worker.speed)} now`, speed(worker.last_speed) && `${speed(worker.last_speed)} the last time`].filter(Boolean).join(", ")],
    ["set aside", worker.pools_aside.join(", ")],
    ["GPU", gpu(can)],
    ["ffmpeg", ffmpegs(can).join(", ")],
    ["encoders", encoders(can).join(", ")],
    ["keys", worker.keys.map((key) => `${key.key_prefix}… ${key.revoked_at ? "revoked" : `used ${ago(key.last_used_at)}`}`).join(", ")],
  ].filter(([, value]) => value);
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function Steps({ steps }) {
  if (!steps.length) return html`<p class="muted">It has not done anything yet.</p>`;
  return html`<h3>Last steps</h3><ul class="log" tabindex="0" aria-label="Last steps">
    ${steps.slice(0, 20).map(
      (step) => html`<li key=${`${step.job_id}/${step.step_key}/${step.generation}/${step.attempt}`}>
        <time>${step.finished_at ? span((Date.parse(step.finished_at) - Date.parse(step.started_at)) / 1000) : "now"}</time>
        <div>${step.step.replace(/_/g, " ")} of job ${step.job_id} <${State} of=${step.outcome} word=${OUTCOMES[step.outcome]} /></div></li>`,
    )}
  </ul>`;
}
