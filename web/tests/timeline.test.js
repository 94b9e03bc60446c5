import assert from "node:assert/strict";
import { test } from "node:test";

import { label, lanes, layout, ticks, waiting } from "../page/video/timeline_layout.js";

const T0 = Date.parse("2026-11-16T10:00:00Z");
const at = (seconds) => new Date(T0 + seconds * 1000).toISOString();

function step(from, to, more = {}) {
  return {
    step: "transcode",
    step_key: `transcode:${from}`,
    qualities: ["360p"],
    span: { first_segment: 0, segments: 10 },
    generation: 0,
    attempt: 1,
    worker_id: "w1",
    worker_name: "studio",
    queue: "vlog-cpu",
    scheduled_at: at(0),
    started_at: at(from),
    heartbeat_at: at(from),
    finished_at: to === null ? null : at(to),
    outcome: to === null ? "running" : "completed",
    ...more,
  };
}

test("what ran at once lies in lanes of its own, what ran after another shares one", () => {
  const { queues } = layout([step(0, 4), step(1, 3), step(4, 6)], T0 + 9000);
  const [{ lanes: rows }] = queues[0].workers;
  assert.deepEqual(rows.map((row) => row.map((bar) => (bar.start - T0) / 1000)), [[0, 4], [1]]);
});

test("what runs lasts until now, what was lost until its worker was last heard of", () => {
  const lost = step(1, null, { outcome: "lost", heartbeat_at: at(3), worker_id: "w2" });
  const { start, end, queues } = layout([step(2, null), lost], T0 + 9000);
  assert.deepEqual([start - T0, end - T0], [0, 9000]);
  const ends = queues[0].workers.map((worker) => worker.lanes[0][0].end - T0);
  assert.deepEqual(ends, [3000, 9000]);
});

test("a curve counts what waits for a queue, and goes down to nothing", () => {
  const bars = layout([step(2, 5), step(4, 6), step(0, 1)], T0).queues[0].waits;
  assert.deepEqual(bars.map(({ at: moment, count }) => [(moment - T0) / 1000, count]), [[0, 2], [2, 1], [4, 0]]);
  assert.deepEqual(waiting([]), []);
});

test("queues and workers come in the order in which they began", () => {
  const io = step(0, 1, { queue: "vlog-io", step: "probe" });
  assert.deepEqual(layout([step(2, 3), io], T0).queues.map((queue) => queue.name), ["vlog-io", "vlog-cpu"]);
});

test("nothing is a picture too", () => {
  assert.deepEqual(layout([], T0).queues, []);
  assert.deepEqual(lanes([]), []);
});

test("the axis has few marks at round times, however long it is", () => {
  assert.deepEqual(ticks(10, 5), [0, 2, 4, 6, 8, 10]);
  for (const seconds of [0.3, 7, 59, 400, 5000, 90000]) {
    const marks = ticks(seconds, 8);
    assert.ok(marks.length >= 1 && marks.length <= 9, `${seconds}: ${marks}`);
    assert.ok(marks.every((mark) => mark <= seconds));
  }
});

test("an attempt is called by its qualities and segments, and says when it is not the first", () => {
  assert.equal(label(step(0, 1)), "360p 1–10");
  assert.equal(label(step(0, 1, { attempt: 2 })), "360p 1–10 · try 2");
  assert.equal(label(step(0, 1, { span: { first_segment: 4, segments: 1 } })), "360p 5");
  assert.equal(label(step(0, 1, { step: "master_playlist", qualities: [], span: null })), "master playlist");
});
