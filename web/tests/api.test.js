import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, mock, test } from "node:test";

import { answering, ask, askSession, get, learn, post, session, withQuery } from "../page/common/api.js";

/** A service that answers what it is told to, over a real socket. */
let answers = {};
const server = createServer((request, response) => answers[`${request.method} ${request.url}`]?.(response)); // one that was given up may come late
const said = (status, body) => (response) => response.writeHead(status, { "Content-Type": "application/json" }).end(body);
const plainFetch = globalThis.fetch;

before(async () => {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {any} */ (server.address());
  globalThis.fetch = (path, options) => plainFetch(`http://127.0.0.1:${port}${path}`, options);
});
after(() => {
  globalThis.fetch = plainFetch;
  server.closeAllConnections();
  server.close();
});

test("an answer is its JSON, or nothing", async () => {
  answers = { "GET /a": said(200, '{"b": 1}'), "POST /a": (response) => response.writeHead(204).end() };
  assert.deepEqual(await get("/a"), { b: 1 });
  assert.equal(await post("/a"), null);
});

test("an error has its code and its sentence, also when it is not ours", async () => {
  answers = { "GET /ours": said(409, '{"error": "NO", "detail": "Not now."}'), "GET /proxys": said(502, "<html>") };
  await assert.rejects(get("/ours"), { status: 409, code: "NO", message: "Not now.", passes: false });
  await assert.rejects(get("/proxys"), { status: 502, code: "ERROR", passes: true });
});

test("an answer that is cut off half-way is none", async () => {
  answers = { "GET /cut": (response) => (response.writeHead(200, { "Content-Length": 100 }), response.write('{"items": ['), setTimeout(() => response.destroy(), 20)) };
  await assert.rejects(get("/cut"), { status: 0, code: "OFFLINE", passes: true });
});

test("nobody waits for ever for an answer, and a change is not said to be tried again", { timeout: 10_000 }, async () => {
  answers = { "GET /silent": () => {}, "POST /gone": (response) => response.destroy() };
  const soon = mock.method(AbortSignal, "timeout", (ms) => {
    assert.equal(ms, 30_000);
    const stop = new AbortController();
    setTimeout(() => stop.abort(new DOMException("", "TimeoutError")), 30);
    return stop.signal;
  });
  await assert.rejects(get("/silent"), { status: 0, message: "VLog does not answer. It is tried again by itself." });
  soon.mock.restore();
  await assert.rejects(post("/gone"), { status: 0, message: "VLog does not answer. Please try again." });
});

test("who asks no longer is told so, and not that the service is away", async () => {
  answers = { "GET /silent": () => {} };
  const stop = new AbortController();
  const asked = ask("GET", "/silent", { signal: stop.signal });
  stop.abort();
  await assert.rejects(asked, { name: "AbortError" });
});

test("a browser that cannot wait for the first of two ends asks all the same", async () => {
  answers = { "GET /a": said(200, "1"), "GET /silent": () => {} };
  const { any } = AbortSignal;
  /** @type {any} */ (AbortSignal).any = undefined;
  try {
    const stop = new AbortController();
    assert.equal(await get("/a", stop.signal), 1);
    const asked = get("/silent", stop.signal);
    stop.abort();
    await assert.rejects(asked, { name: "AbortError" });
  } finally {
    AbortSignal.any = any;
  }
});

test("an answer to an older question changes nothing about who looks", { timeout: 10_000 }, async () => {
  const outside = '{"signed_in": false, "secret_required": true}';
  /** @type {any[]} */
  const waiting = [];
  answers = { "GET /api/session": (response) => waiting.push(response) };
  const old = askSession();
  while (!waiting.length) await new Promise((resolve) => setTimeout(resolve, 5));
  learn({ signed_in: true, secret_required: true });
  said(200, outside)(waiting[0]);
  await old;
  assert.equal(session.get()?.signed_in, true);
  answers["GET /api/session"] = said(200, outside);
  await askSession();
  assert.equal(session.get()?.signed_in, false);
});

test("a 401 makes the page ask who it is: not every secret is that of the door", { timeout: 10_000 }, async () => {
  const inside = { signed_in: true, secret_required: true };
  answers = { "POST /register": said(401, '{"error": "ADMIN_SECRET_REQUIRED", "detail": "No."}'), "GET /api/session": said(200, JSON.stringify(inside)) };
  session.set(inside);
  await assert.rejects(post("/register"), { status: 401 });
  await askSession();
  assert.equal(session.get()?.signed_in, true);
  answers["GET /api/session"] = said(200, '{"signed_in": false, "secret_required": true}');
  await assert.rejects(post("/register"), { status: 401 });
  await new Promise((resolve) => void session.watch(resolve));
  assert.equal(session.get()?.signed_in, false);
  answers["GET /api/session"] = (response) => response.destroy();
  await askSession();
  assert.equal(session.get()?.signed_in, false, "what was known holds");
});

test("what is empty is left out of an address", () => {
  assert.equal(withQuery("/a", { b: "", c: null, d: undefined, e: "x y", f: 0 }), "/a?e=x+y&f=0");
  assert.equal(withQuery("/a", {}), "/a");
});

test("it is known whether anybody answers, also with an error", async () => {
  answers = { "GET /gone": (response) => response.destroy(), "GET /busy": said(503, "{}") };
  await assert.rejects(get("/gone"), { status: 0 });
  assert.equal(answering.get(), false);
  await assert.rejects(get("/busy"), { status: 503 });
  assert.equal(answering.get(), true);
});
