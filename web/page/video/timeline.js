// The timeline: every attempt of every step, over queues and workers, drawn while it happens.
import { useNow } from "../common/asking.js";
import { html, useMemo, useState } from "../common/view.js";
import { OUTCOMES, span } from "../common/words.js";
import { keyOf, label } from "./timeline_layout.js";
import { Picture } from "./timeline_picture.js";

const LIVE_MS = 500;

export function Timeline({ steps, job }) {
  const running = steps.some((step) => step.outcome === "running");
  const now = useNow(running ? LIVE_MS : 0);
  const [chosen, setChosen] = useState("");
  const step = useMemo(() => steps.find((one) => keyOf(one) === chosen), [steps, chosen]);
  const bad = steps.filter((one) => one.outcome === "failed" || one.outcome === "lost").length;
  return html`<section class="panel timeline" aria-label="Timeline">
    <header>
      <h2>Timeline</h2>
      <span class="muted">${job ? `job ${job.job_id}` : ""}</span>
      <div class="legend" aria-hidden="true">
        <span><i class="waits"></i>waiting</span><span><i class="running"></i>at work</span><span><i></i>done</span>
        <span><i class="partial"></i>handed back</span><span><i class="failed"></i>failed or lost</span>
      </div>
    </header>
    ${!steps.length && html`<p class="muted">No worker has taken a step of it yet.</p>`}
    ${steps.length > 0 && html`<${Picture} steps=${steps} now=${now} chosen=${chosen} choose=${setChosen}
      summary="${steps.length} attempts, ${bad} of them failed or lost" />`}
    ${steps.length > 0 && html`<div class="attempt-facts">${step ? html`<${Facts} step=${step} now=${now} />` : html`<span class="muted">Point at a bar to see what it was.</span>`}</div>`}
    ${steps.length > 0 && html`<${Table} steps=${steps} now=${now} />`}
  </section>`;
}

const since = (from, to) => (Date.parse(to) - Date.parse(from)) / 1000;

function worked(step, now) {
  return step.started_at ? since(step.started_at, step.finished_at ?? new Date(now).toISOString()) : 0;
}

function waited(step) {
  return step.scheduled_at && step.started_at ? Math.max(0, since(step.scheduled_at, step.started_at)) : 0;
}

function Facts({ step, now }) {
  return html`<b>${step.step.replace(/_/g, " ")}</b><span>${label(step)}</span>
    <span>${OUTCOMES[step.outcome]}${step.outcome === "running" ? `, ${Math.floor(step.percent)}%` : ""}</span>
    <span class="muted">waited ${span(waited(step))}, worked ${span(worked(step, now))}</span>
    <span class="muted">${step.worker_name ?? step.worker_id}, ${step.queue}</span>
    ${step.error_message && html`<span class="bad-text">${step.error_message} <span class="code">${step.error_code}</span></span>`}`;
}

/** The same as a table, for those who would rather read, or hear it. */
function Table({ steps, now }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.target.open)}>
    <summary>As a table (${steps.length})</summary>
    ${open &&
    html`<div class="table-box" tabindex="0" role="region" aria-label="Attempts"><table>
      <thead><tr><th>Step</th><th>Try</th><th>Worker</th><th>Queue</th><th class="number">Waited</th><th class="number">Worked</th><th>Outcome</th></tr></thead>
      <tbody>${steps.map(
        (step) => html`<tr key=${keyOf(step)}>
          <td>${step.step.replace(/_/g, " ")} <span class="muted">${step.step === "transcode" ? label(step) : ""}</span></td>
          <td>${step.attempt}</td><td>${step.worker_name ?? step.worker_id ?? "–"}</td><td>${step.queue}</td>
          <td class="number">${span(waited(step))}</td><td class="number">${span(worked(step, now))}</td>
          <td>${OUTCOMES[step.outcome]}${step.error_code ? html` <span class="code">${step.error_code}</span>` : ""}</td></tr>`,
      )}</tbody>
    </table></div>`}
  </details>`;
}
