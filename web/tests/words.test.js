import assert from "node:assert/strict";
import { test } from "node:test";

import { bytes, clock, percent, span, speed } from "../page/common/words.js";
import { parse } from "../page/player/storyboard.js";
import { frameAt } from "../page/player/storyboard.js";
import { meter } from "../page/upload/rate.js";

test("times and sizes are said as people say them", () => {
  assert.deepEqual([0, 75, 3675, -1, NaN].map(clock), ["0:00", "1:15", "1:01:15", "0:00", "0:00"]);
  assert.deepEqual([0, 999, 1000, 18_300_000, 2e9, 123e9].map(bytes), ["0 B", "999 B", "1.0 kB", "18.3 MB", "2.0 GB", "123 GB"]);
  assert.deepEqual([0.42, 12.4, 200, 4800, 400000].map(span), ["0.4 s", "12 s", "3 min", "1 h 20 min", "5 days"]);
  assert.deepEqual([null, Infinity].map(span), ["–", "–"]);
});

test("99.9 percent is not done", () => {
  assert.deepEqual([99.9, 100, 104, -3, undefined].map(percent), ["99%", "100%", "100%", "0%", "0%"]);
});

test("a speed that cannot be known is not shown", () => {
  assert.deepEqual([2.44, 12.3, 0, Infinity, NaN].map(speed), ["2.4×", "12×", "", "", ""]);
});

test("a storyboard is read, and what is not a picture of it is passed over", () => {
  const text = "WEBVTT\n\n00:00:00.000 --> 00:00:05.000\ns_000.jpg#xywh=0,0,160,90\n\nNOTE no\n\n00:05.000 --> 00:10.000\ns_000.jpg#xywh=160,0,160,90\n\n00:10.000 --> 00:15.000\nwords\n";
  const frames = parse(text, "http://localhost/videos/a/storyboard.vtt");
  assert.equal(frames.length, 2);
  assert.deepEqual(frames[1], { start: 5, end: 10, url: "http://localhost/videos/a/s_000.jpg", x: 160, y: 0, w: 160, h: 90 });
  assert.deepEqual([0, 4.9, 5, 99].map((time) => frameAt(frames, time)?.x), [0, 0, 160, 160]);
  assert.equal(frameAt([], 1), null);
});

test("the rate is that of the last seconds, and begins anew after a resume", () => {
  const pace = meter();
  assert.equal(pace.rate(), 0);
  for (let second = 0; second <= 20; second += 1) pace.note(second * 1000 * (second > 10 ? 2 : 1), second * 1000);
  assert.equal(pace.rate(), 2000);
  pace.note(100, 21000);
  assert.equal(pace.rate(), 0);
});
