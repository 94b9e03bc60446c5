import assert from "node:assert/strict";
import { test } from "node:test";

import { mending } from "../page/player/mending.js";

test("a picture that breaks at one place is mended five times, and then no more", () => {
  const mayMend = mending();
  // Attached anew, a video stands at its start for a moment.
  assert.deepEqual([60, 60, 0, 61, 60].map(mayMend), [true, true, true, true, true]);
  assert.equal(mayMend(60), false);
  assert.equal(mayMend(0), false);
});

test("what played on behind it has all its tries again", () => {
  const mayMend = mending();
  for (let time = 10; time < 200; time += 10) assert.equal(mayMend(time), true, `${time}`);
  const creeping = mending();
  const told = [0, 1, 2, 3, 4, 5].map(creeping);
  assert.equal(told.at(-1), false, "a second at a time is not playing");
});
