import assert from "node:assert/strict";
import { test } from "node:test";

import { isHopeless, isStalled, refuseToForget, statusOf } from "../page/upload/trying.js";

const request = (method) => ({ getMethod: () => method });
const response = (status) => ({ getStatus: () => status });

test("what passes by itself is tried again, and what does not is not", () => {
  for (const status of [0, 408, 409, 423, 429, 460, 500, 502, 503]) assert.equal(isHopeless(status), false, status);
  for (const status of [400, 401, 403, 404, 410, 412, 413, 415, 421, 501, 507]) assert.equal(isHopeless(status), true, status);
});

test("an upload is begun anew only when the server has forgotten it", () => {
  for (const status of [401, 403, 429, 500, 502, 503]) {
    assert.throws(() => refuseToForget(request("HEAD"), response(status)), { status });
    refuseToForget(request("PATCH"), response(status));
  }
  for (const status of [200, 404, 410, 423]) refuseToForget(request("HEAD"), response(status));
});

test("who hears nothing for longer than the server waits has lost it, unless all is sent", () => {
  const one = { state: "running", sent: 5, size: 10 };
  assert.equal(isStalled(one, 1000, 1000 + 44_000), false);
  assert.equal(isStalled(one, 1000, 1000 + 46_000), true);
  assert.equal(isStalled({ ...one, sent: 10 }, 0, 1e9), false);
  for (const state of ["paused", "waiting", "done", "failed"]) assert.equal(isStalled({ ...one, state }, 0, 1e9), false);
});

test("a try anew that hears nothing is tried anew itself, also when all was sent before", () => {
  const one = { state: "lost", sent: 5, size: 10 };
  assert.equal(isStalled(one, 1000, 1000 + 44_000), false);
  assert.equal(isStalled(one, 1000, 1000 + 46_000), true);
  assert.equal(isStalled({ ...one, sent: 10 }, 1000, 1000 + 46_000), true);
});

test("the status is found where tus-js-client puts it", () => {
  assert.equal(statusOf({ originalResponse: response(413) }), 413);
  assert.equal(statusOf({ originalResponse: null, causingError: { status: 503 } }), 503);
  assert.equal(statusOf({ originalResponse: null, causingError: new Error("network") }), 0);
});
