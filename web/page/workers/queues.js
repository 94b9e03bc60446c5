// Queues: what waits for whom, and for how long.
import { get } from "../common/api.js";
import { useEvery } from "../common/asking.js";
import { Broken } from "../common/states.js";
import { html, useEffect, useState } from "../common/view.js";
import { many, span } from "../common/words.js";
import { Chart } from "./chart.js";

const LOOK_MS = 3000;
const KEPT = 100; // five minutes
/** They are always these: what is not known yet has its place. */
const NAMES = ["orchestrate", "cpu", "gpu", "io", "probe", "analysis"].map((name) => `vlog-${name}`);
/** What was seen since the page was opened: it stays while one looks at something else. */
const seen = new Map();

export function Queues() {
  const [queues, setQueues] = useState(/** @type {any[] | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  async function look() {
    try {
      const told = await get("/api/queues");
      for (const one of told.items) {
        seen.set(one.queue, [...(seen.get(one.queue) ?? []), one.backlog ?? 0].slice(-KEPT));
      }
      setQueues(told.items);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  }
  useEffect(() => void look(), []);
  useEvery(LOOK_MS, look);
  if (error && !queues) return html`<${Broken} error=${error} again=${look} />`;
  return html`<section aria-label="Queues" aria-busy=${!queues}>
    <div class="page-head"><h1>Queues</h1><span class="muted">the last five minutes</span></div>
    ${error && html`<p class="note bad" role="alert">${error.message}</p>`}
    <div class="queues">${queues
      ? queues.map((one) => html`<${Queue} key=${one.queue} one=${one} />`)
      : NAMES.map((name) => html`<${Queue} key=${name} one=${{ queue: name }} />`)}</div>
  </section>`;
}

function Queue({ one }) {
  const values = seen.get(one.queue) ?? [];
  const most = Math.max(0, ...values);
  return html`<article class="panel" aria-label=${one.queue}>
    <header><h2>${one.queue}</h2><span class="muted">${one.workers == null ? "" : one.workers ? many(one.workers, "worker") : "no workers"}</span></header>
    <div class="queue-numbers">
      <div><b>${one.backlog ?? "–"}</b><span>waiting</span></div>
      <div><b>${one.backlog ? span(one.oldest_wait_seconds) : "–"}</b><span>oldest wait</span></div>
      <div><b>${one.running ?? "–"}</b><span>at work</span></div>
    </div>
    <div class="queue-chart">${most > 0 && html`<span>at most ${most}</span>`}
      <${Chart} values=${values} room=${KEPT} label="Backlog of ${one.queue}" /></div>
  </article>`;
}
