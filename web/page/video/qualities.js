// How far each quality is, how fast it goes, and how long it may still take.
import { useNow } from "../common/asking.js";
import { Bar } from "../common/states.js";
import { html } from "../common/view.js";
import { bytes, many, percent, span, speed } from "../common/words.js";

const KIND = { completed: "good", failed: "bad", in_progress: "busy", uploading: "busy", uploaded: "good" };

export function Qualities({ video, progress, job }) {
  const qualities = progress?.qualities ?? job?.qualities ?? [];
  const busy = progress?.state === "claimed";
  const now = useNow(busy ? 1000 : 0);
  const made = new Map(video.qualities.map((one) => [one.quality, one]));
  const skipped = qualities.filter((one) => one.status === "skipped").map((one) => one.quality);
  const shown = qualities
    .filter((one) => one.status !== "skipped")
    .sort((one, other) => parseInt(other.quality, 10) - parseInt(one.quality, 10));
  const state = progress?.state ?? job?.state;
  const done = ["completed", "failed", "cancelled"].includes(state);
  return html`<section class="panel" aria-label="Qualities">
    ${progress && !done
      ? html`<div class="overall"><b>${percent(progress.percent)}</b><span class="muted">${about(progress)}</span></div>`
      : html`<header><h2>Qualities</h2><span class="muted">${many(video.qualities.length, "quality", "qualities")}</span></header>`}
    ${!qualities.length && html`<p class="muted">${done ? "None was planned." : "They are chosen when the source has been read."}</p>`}
    <ul class="qualities">
      ${shown.map((one) => html`<${Quality} key=${one.quality} one=${one} made=${made.get(one.quality)} duration=${video.duration} now=${now} busy=${busy} over=${done} cancelled=${state === "cancelled"} />`)}
    </ul>
    ${skipped.length > 0 && html`<p class="muted skipped">${skipped.join(", ")} would be larger than the source.</p>`}
  </section>`;
}

function about({ state, step, eta_seconds: left, attempt, max_attempts: most }) {
  if (state === "paused") return "paused";
  if (state === "unclaimed") return "waits for a worker";
  if (state === "retrying" || state === "expired") return `tried again soon, attempt ${attempt} of ${most}`;
  const doing = (step ?? "starting").replace(/_/g, " ");
  return left == null ? doing : `${doing}, about ${span(left)} left`;
}

function Quality({ one, made, duration, now, busy, over, cancelled }) {
  const done = one.status === "completed";
  if (cancelled && !done) // the page says why, once
    return html`<li class="quality"><strong>${one.quality}</strong><${Bar} percent=${0} kind="calm" label="${one.quality}" />
      <span class="line">not made</span></li>`;
  // What failed while the job goes on is tried again.
  const again = one.status === "failed" && !over;
  const kind = again ? "warn" : (KIND[one.status] ?? "calm");
  return html`<li class="quality">
    <strong>${one.quality}</strong>
    <${Bar} percent=${done ? 100 : one.percent} kind=${kind} label="${one.quality}" />
    <span class="line"><span>${again ? "tried again soon" : left(one, made)}</span><span>${right(one, duration, now, busy)}</span></span>
    ${one.error_message && html`<span class="line ${again ? "" : "bad-text"}">${one.error_message}</span>`}
  </li>`;
}

function left(one, made) {
  if (one.status === "completed") return made ? `${made.width}×${made.height}, ${bytes(made.size_bytes)}` : "done";
  if (one.status === "failed") return "failed";
  const segments = one.segments_total ? `${one.segments_completed} of ${one.segments_total} segments` : "";
  return one.status === "pending" && !one.segments_completed ? "waiting" : segments;
}

/** The speed is seconds of video per second; what is left follows from it. */
function right(one, duration, now, busy) {
  if (!one.started_at || !duration) return "";
  const end = one.completed_at ? Date.parse(one.completed_at) : now;
  const spent = Math.max(0.5, (end - Date.parse(one.started_at)) / 1000);
  const part = one.status === "completed" ? 1 : one.percent / 100;
  const rate = (part * duration) / spent;
  if (one.status === "completed") return speed(rate);
  if (!busy || one.status !== "in_progress" || part < 0.03) return "";
  return `${speed(rate)}, ${span((spent * (1 - part)) / part)} left`;
}
