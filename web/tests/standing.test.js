import assert from "node:assert/strict";
import { test } from "node:test";

import { standing, word } from "../page/library/standing.js";

test("a video says how it stands, and a wish is not a failure", () => {
  const said = (video) => [standing(video), word(video)];
  assert.deepEqual(said({ status: "pending" }), ["pending", "waiting"]);
  assert.deepEqual(said({ status: "pending", percent: 3.4, state: "retrying" }), ["pending", "waiting, 3%"]);
  assert.deepEqual(said({ status: "processing" }), ["processing", "working"]);
  assert.deepEqual(said({ status: "processing", percent: 0 }), ["processing", "0%"]);
  assert.deepEqual(said({ status: "failed", error_code: "SOURCE_UNREADABLE" }), ["failed", "failed"]);
  assert.deepEqual(said({ status: "failed", error_code: "CANCELLED" }), ["cancelled", "cancelled"]);
  assert.deepEqual(said({ status: "ready", missing: [] }), ["ready", "ready"]);
  assert.deepEqual(said({ status: "processing", percent: 4, deleted_at: "2026-11-17T18:00:00Z" }), ["deleted", "deleted"]);
  assert.deepEqual(said({ status: "ready", missing: [{}], state: "paused" }), ["ready", "ready, 1 missing"]);
});

test("a paused video says so, also before a worker had it", () => {
  assert.equal(word({ status: "pending", percent: 3, state: "paused" }), "paused, 3%");
  assert.equal(word({ status: "processing", percent: 40, state: "paused" }), "paused, 40%");
  assert.equal(word({ status: "pending", percent: 0, state: "paused" }), "paused");
});
