// The picture itself, as SVG: a curve of what waits for each queue, and below it a lane for each thing done at once.
import { html, useEffect, useMemo, useRef, useState } from "../common/view.js";
import { label, layout, ticks } from "./timeline_layout.js";

const ROW = 22;
const HEAD = 30;
const AXIS = 22;
const LEAST = 520; // below, it scrolls
const LETTER = 7.3; // about as wide as one of our small letters

export function Picture({ steps, now, chosen, choose, summary }) {
  const box = useRef(/** @type {any} */ (null));
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const seen = new ResizeObserver(([entry]) => setWidth(Math.max(LEAST, Math.floor(entry.contentRect.width))));
    seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  const plan = useMemo(() => layout(steps, now), [steps, now]);
  const rows = plan.queues.map((queue) => queue.workers.reduce((sum, worker) => sum + worker.lanes.length, 0));
  const height = AXIS + rows.reduce((sum, count) => sum + HEAD + count * ROW, 0) + 4;
  return html`<div class="timeline-scroll" ref=${box}>
    <svg width=${width} height=${height} viewBox="0 0 ${width || 1} ${height}" role="group" aria-label="Timeline: ${summary}" onKeyDown=${walk}>
      <defs><pattern id="stripes" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="3" height="6" fill="#000" opacity="0.28" /></pattern></defs>
      ${width > 0 && html`<${Inside} plan=${plan} width=${width} height=${height} chosen=${chosen} choose=${choose} />`}
    </svg>
  </div>`;
}

function Inside({ plan, width, height, chosen, choose }) {
  const gutter = width < 640 ? 84 : 172;
  const scale = (width - gutter - 8) / (plan.end - plan.start);
  const x = (moment) => gutter + (moment - plan.start) * scale;
  const seconds = (plan.end - plan.start) / 1000;
  const marks = ticks(seconds, (width - gutter) / 90);
  let y = AXIS;
  const parts = [];
  let first = true;
  for (const queue of plan.queues) {
    parts.push(html`<${Queue} key=${queue.name} queue=${queue} y=${y} x=${x} gutter=${gutter} width=${width} end=${plan.end} />`);
    y += HEAD;
    for (const worker of queue.workers) {
      parts.push(html`<text key=${`${queue.name}/${worker.id}`} x="10" y=${y + 15}>${cut(worker.name, (gutter - 18) / LETTER)}</text>`);
      for (const lane of worker.lanes) {
        for (const bar of lane) {
          const props = { bar, x, y, chosen: bar.key === chosen, choose, tab: chosen ? bar.key === chosen : first };
          parts.push(html`<${Attempt} key=${bar.key} ...${props} />`);
          first = false;
        }
        y += ROW;
      }
    }
  }
  return html`${marks.map(
    (mark) => html`<g key=${mark}><line class="tick-line" x1=${x(plan.start + mark * 1000)} x2=${x(plan.start + mark * 1000)} y1=${AXIS - 4} y2=${height} />
      ${x(plan.start + mark * 1000) < width - 40 && html`<text x=${x(plan.start + mark * 1000) + 3} y="13">${time(mark)}</text>`}</g>`,
  )}${parts}`;
}

function Queue({ queue, y, x, gutter, width, end }) {
  const base = y + HEAD - 4;
  const tall = (count) => base - (count / Math.max(1, queue.most)) * (HEAD - 12);
  const name = queue.name.replace("vlog-", "");
  const room = (gutter - 14) / LETTER - name.length;
  const said = [`≤ ${queue.most} waiting`, `≤ ${queue.most}`, ""].find((words) => words.length < room) ?? "";
  let line = "";
  for (const { at, count } of queue.waits) line += `${line ? "H" : `M${x(at)} ${base}H`}${x(at)}V${tall(count)}`;
  return html`<g>
    <line class="row-line" x1="0" x2=${width} y1=${y} y2=${y} />
    <text class="queue-name" x="0" y=${y + 18}>${name}</text>
    ${line && html`<path class="waits" d="${line}H${x(end)}V${base}Z" />`}
    ${queue.most > 0 && html`<text x=${gutter - 10} y=${y + 18} text-anchor="end">${said}</text>`}
  </g>`;
}

function Attempt({ bar, x, y, chosen, choose, tab }) {
  const { step } = bar;
  const left = x(bar.start);
  const wide = Math.max(3, x(bar.end) - left);
  const text = words(label(step), (wide - 8) / LETTER);
  const pick = () => choose(bar.key);
  const crashed = step.outcome === "lost" || step.outcome === "failed";
  return html`<g class="attempt ${step.outcome} ${chosen ? "is-chosen" : ""}" role="button" tabindex=${tab ? 0 : -1}
    aria-label="${label(step)}, ${step.outcome}, ${step.worker_name ?? ""}" aria-pressed=${chosen}
    onPointerEnter=${pick} onFocus=${pick} onClick=${pick}>
    ${chosen && bar.start > bar.scheduled && html`<line class="waited" x1=${x(bar.scheduled)} x2=${left} y1=${y + ROW / 2} y2=${y + ROW / 2} />`}
    <rect x=${left} y=${y + 2} width=${wide} height=${ROW - 4} rx="3" />
    ${crashed && html`<rect class="stripes" x=${left} y=${y + 2} width=${wide} height=${ROW - 4} rx="3" fill="url(#stripes)" />`}
    ${text && html`<text x=${left + 5} y=${y + 15}>${text}</text>`}
  </g>`;
}

/** As many whole words as there is room for: what one reads has to be a part of what is read aloud. */
function words(text, letters) {
  const room = Math.floor(letters);
  return text.length <= room ? text : text.slice(0, Math.max(0, text.lastIndexOf(" ", room))).trim();
}

function cut(text, letters) {
  const room = Math.floor(letters);
  return text.length <= room ? text : room > 3 ? `${text.slice(0, room - 1)}…` : "";
}

function time(seconds) {
  if (seconds < 60) return `${seconds} s`;
  const [minutes, rest] = [Math.floor(seconds / 60), Math.round(seconds % 60)];
  return rest ? `${minutes}:${String(rest).padStart(2, "0")}` : `${minutes} min`;
}

/** Arrows go from bar to bar; only one of them is a stop of the Tab key. */
function walk(event) {
  const all = [...event.currentTarget.querySelectorAll(".attempt")];
  const at = all.indexOf(document.activeElement);
  const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (at < 0 || to === undefined || !all[to]) return;
  event.preventDefault();
  all[to].focus();
}
