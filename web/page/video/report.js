// What was found in the source, what was decided about it, and what was verified in the end.
import { html } from "../common/view.js";
import { bytes, clock, many } from "../common/words.js";

export function Report({ video, job, steps }) {
  const { report } = video;
  return html`<section class="panel" aria-label="Report">
    <header><h2>Report</h2></header>
    ${!report && html`<p class="muted">${video.status === "failed" ? "Nothing is known of the source." : "The source has not been read yet."}</p>`}
    ${report && html`<${Found} report=${report} />`}
    ${report?.decided && html`<${Decided} decided=${report.decided} made=${video.qualities} />`}
    <${Verified} steps=${steps} video=${video} />
    ${job && html`<h3 class="sub">Job</h3>
      <${Facts} facts=${[
        ["job", `${job.job_id}, ${job.kind}${job.continues_job_id ? ` of job ${job.continues_job_id}` : ""}`],
        ["workflow", job.workflow_id],
        ["attempt", `${job.attempt_number} of ${job.max_attempts}`],
        ["last error", job.last_error],
      ]} />`}
  </section>`;
}

function Facts({ facts }) {
  const kept = facts.filter(([, value]) => value);
  return html`<dl class="facts">${kept.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

function Found({ report }) {
  const { video } = report;
  const turned = video.rotation ? `, turned by ${video.rotation}°` : "";
  const facts = [
    ["file", `${report.container.split(",").slice(0, 2).join("/")}, ${bytes(report.size_bytes)}, ${clock(report.duration)}${report.remuxed_to ? `, copied to ${report.remuxed_to}` : ""}`],
    ["picture", `${video.codec}, ${video.display_width}×${video.display_height}, ${video.bit_depth} bit${turned}`],
    ["frames", `${video.frames.toLocaleString("en")}, ${rate(video.frame_rate)} a second${video.variable_rate ? ", variable" : ""}`],
    ["colour", report.hdr ?? ([video.color_space, video.color_range].filter(Boolean).join(", ") || "not told")],
    ...report.audio.map((one, at) => [at ? "" : "sound", `${one.codec}, ${many(one.channels, "channel")}${inLanguage(one)}`]),
    ...report.subtitles.map((one, at) => [at ? "" : "subtitles", `${one.codec}${inLanguage(one)}${one.forced ? ", forced" : ""}`]),
  ];
  if (!report.audio.length) facts.push(["sound", "none"]);
  return html`<h3 class="sub">Found</h3>
    <${Facts} facts=${facts} />
    <div class="list-notes">${report.warnings.map((warning) => html`<p class="note warn">${warning}</p>`)}</div>`;
}

function Decided({ decided, made }) {
  const done = new Map(made.map((one) => [one.quality, one]));
  return html`<h3 class="sub">Decided</h3>
    <${Facts} facts=${[
      ["frames", `${decided.frames.toLocaleString("en")} at ${rate(decided.frame_rate)} a second, segments of ${decided.segment_seconds} s`],
      ["tone mapping", decided.tone_map],
      ["deinterlaced", decided.deinterlaced && "yes"],
    ]} />
    <div class="table-box" tabindex="0" role="region" aria-label="Renditions"><table>
      <thead><tr><th>Quality</th><th>Size</th><th>Encoder</th><th class="number">At most</th><th class="number">Made</th></tr></thead>
      <tbody>${decided.renditions.map(
        (one) => html`<tr key=${one.quality}><td>${one.quality}</td><td>${one.width}×${one.height}</td>
          <td>${one.encoder || one.codec}${one.gpu ? " (GPU)" : ""}</td><td class="number">${one.bitrate.toLocaleString("en")} kbit/s</td>
          <td class="number">${done.has(one.quality) ? bytes(done.get(one.quality).size_bytes) : "–"}</td></tr>`,
      )}</tbody>
    </table></div>
    <div class="list-notes">${decided.notes.map((note) => html`<p class="note">${note}</p>`)}</div>`;
}

function Verified({ steps, video }) {
  const last = steps.filter((step) => step.step === "verify").at(-1);
  if (!last) return null;
  const fine = last.outcome === "completed";
  return html`<h3 class="sub">Verified</h3>
    <p class="note ${fine ? "good" : last.outcome === "running" ? "" : "bad"}">
      ${fine
        ? `Every segment of ${many(video.qualities.length || 0, "quality", "qualities")} was checked: frames, times and headers are right.`
        : (last.error_message ?? "It is being checked.")}
    </p>`;
}

/** Files say "und" for a language that nobody told them. */
const inLanguage = ({ language }) => (language && language !== "und" ? `, ${language}` : "");

function rate(fraction) {
  const [above, below = 1] = String(fraction).split("/").map(Number);
  return below ? Number((above / below).toFixed(3)).toString() : "?";
}
