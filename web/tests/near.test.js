import assert from "node:assert/strict";
import { test } from "node:test";

import { near } from "../page/library/near.js";

const seen = { count: 10_000, columns: 5, row: 250, height: 800 };

test("at the top the first rows are there, and room for all the others", () => {
  const { from, to, above, below } = near({ ...seen, top: -60 });
  assert.deepEqual([from, to, above], [0, 40, 0]);
  assert.equal(above + below + ((to - from) / 5) * 250, 2000 * 250);
});

test("in the middle a few screens are there, wherever one stands", () => {
  for (const top of [1, 99_999, 250_000, 499_000, 900_000]) {
    const { from, to, above, below } = near({ ...seen, top });
    assert.ok(to - from >= 5 && to - from <= 100, `${to - from} cards at ${top}`);
    assert.equal(from % 5, 0);
    assert.equal(above + below + Math.ceil((to - from) / 5) * 250, 2000 * 250);
    if (top < 499_000) assert.ok(above <= top && above + Math.ceil((to - from) / 5) * 250 >= top + 800, "what is seen is there");
  }
});

test("a last row that is not full has its place", () => {
  assert.deepEqual(near({ ...seen, count: 7, top: 0 }), { from: 0, to: 7, above: 0, below: 0 });
});
