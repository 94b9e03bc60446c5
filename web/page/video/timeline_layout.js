// Where every attempt of every step goes in the picture: below its queue, in a lane of its worker. Pure.

const at = (moment) => (moment ? Date.parse(moment) : null);

/** An attempt that nobody ended lasts until now, or until its worker was last heard of. */
export function bar(step, now) {
  const start = at(step.started_at) ?? at(step.scheduled_at) ?? now;
  const end = at(step.finished_at) ?? (step.outcome === "running" ? now : (at(step.heartbeat_at) ?? start));
  const scheduled = Math.min(at(step.scheduled_at) ?? start, start);
  return { step, start, end: Math.max(start, end), scheduled, key: keyOf(step) };
}

export const keyOf = (step) => `${step.step_key}/${step.generation}/${step.attempt}`;

/**
 * @returns {{start: number, end: number, queues: {name: string, waits: {at: number, count: number}[], most: number, workers: {id: string, name: string, lanes: any[][]}[]}[]}}
 */
export function layout(steps, now) {
  const bars = steps.map((step) => bar(step, now)).sort((one, other) => one.start - other.start);
  if (!bars.length) return { start: now, end: now, queues: [] };
  const start = Math.min(...bars.map((one) => one.scheduled));
  const end = Math.max(...bars.map((one) => one.end), start + 1);
  const queues = [...groups(bars, (one) => one.step.queue)].map(([name, inQueue]) => {
    const waits = waiting(inQueue);
    const workers = [...groups(inQueue, (one) => one.step.worker_id ?? "")].map(([id, held]) => ({
      id,
      name: held[0].step.worker_name ?? (id || "nobody"),
      lanes: lanes(held),
    }));
    return { name, waits, most: Math.max(0, ...waits.map((one) => one.count)), workers };
  });
  return { start, end, queues };
}

function groups(items, keyOfItem) {
  const found = new Map();
  for (const item of items) {
    const key = keyOfItem(item);
    found.set(key, [...(found.get(key) ?? []), item]);
  }
  return found;
}

/** Put each bar into the first lane that is free by then, so that what ran at once lies side by side. */
export function lanes(bars) {
  /** @type {any[][]} */
  const rows = [];
  for (const one of bars) {
    const free = rows.find((row) => row[row.length - 1].end <= one.start);
    if (free) free.push(one);
    else rows.push([one]);
  }
  return rows;
}

/** How many attempts stood in the queue, as steps of a curve. */
export function waiting(bars) {
  const changes = new Map();
  for (const { scheduled, start } of bars) {
    if (start <= scheduled) continue;
    changes.set(scheduled, (changes.get(scheduled) ?? 0) + 1);
    changes.set(start, (changes.get(start) ?? 0) - 1);
  }
  let count = 0;
  return [...changes]
    .sort(([one], [other]) => one - other)
    .map(([moment, change]) => ({ at: moment, count: (count += change) }));
}

const NICE_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400];

/** Marks of the time axis, in seconds since the start: few enough to be read. */
export function ticks(seconds, room) {
  const step = NICE_S.find((nice) => seconds / nice <= Math.max(2, room)) ?? Math.ceil(seconds / room);
  return Array.from({ length: Math.floor(seconds / step) + 1 }, (_, index) => Number((index * step).toFixed(1)));
}

/** What an attempt is called in the picture. */
export function label(step) {
  const what = step.qualities.length && step.step === "transcode" ? step.qualities.join(" ") : step.step.replace(/_/g, " ");
  const part = step.span && step.step === "transcode" ? ` ${segments(step.span)}` : "";
  const again = step.attempt > 1 ? ` · try ${step.attempt}` : step.generation > 0 ? ` · round ${step.generation + 1}` : "";
  return what + part + again;
}

function segments({ first_segment: first, segments: count }) {
  return count > 1 ? `${first + 1}–${first + count}` : `${first + 1}`;
}
