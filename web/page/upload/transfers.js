// Files on their way. They go on while one looks at other pages, and after a lost network or a closed tab.
import { askSession, session } from "../common/api.js";
import { store } from "../common/store.js";
import { say } from "../common/toasts.js";
import { refresh } from "../library/list.js";
import { meter } from "./rate.js";
import { isHopeless, isStalled, refuseToForget, statusOf } from "./trying.js";

const AT_ONCE = 2;
const ENDPOINT = "/api/uploads";
const LOOK_MS = 5000;
const LOST = "The connection was lost.";
const PATIENCE_MS = [0, 500, 1000, 2000, 4000, 8000, ...Array(200).fill(10000)];

const GOING = ["running", "lost", "waiting"];

/** @typedef {{id: number, name: string, size: number, sent: number, rate: number, state: string, sentence: string, video: number | null}} Transfer */
export const transfers = store(/** @type {Transfer[]} */ ([]));
const engines = new Map();
const interrupted = new Set(); // by the end of a session: who signs in again goes on with them
/** Where the server has what was cancelled here, until it has heard of that. */
export const givenUp = new Set();
let number = 0;

export async function library() {
  await import("../lib/tus.js");
  return /** @type {any} */ (globalThis).tus;
}

/** Take files in; each waits for its turn. */
export function add(files, details = {}) {
  for (const file of files) {
    number += 1;
    const one = { id: number, name: file.name, size: file.size, sent: 0, rate: 0, state: "waiting", sentence: "", video: null };
    engines.set(number, { file, details: files.length === 1 ? details : { ...details, title: "" }, meter: meter(), upload: null, heardAt: 0 });
    transfers.set([...transfers.get(), one]);
  }
  next();
}

function change(id, news) {
  transfers.set(transfers.get().map((one) => (one.id === id ? { ...one, ...news } : one)));
}

const stateOf = (id) => transfers.get().find((one) => one.id === id)?.state;

function next() {
  const all = transfers.get();
  const busy = all.filter((one) => one.state === "running" || one.state === "lost").length;
  for (const one of all.filter(({ state }) => state === "waiting").slice(0, Math.max(0, AT_ONCE - busy))) begin(one.id);
}

async function begin(id) {
  const engine = engines.get(id);
  engine.heardAt = Date.now();
  change(id, { state: "running", sentence: "" });
  try {
    const { Upload } = await library();
    const upload = engine.upload ?? new Upload(engine.file, options(id, engine));
    const [before] = await upload.findPreviousUploads();
    if (before) upload.resumeFromPreviousUpload(before);
    engine.upload = upload;
    engine.heardAt = Date.now();
    const state = stateOf(id);
    if (state === "running" || state === "lost") upload.start(); // lost: the library took its time
  } catch {
    change(id, { state: "failed", sentence: "The upload could not be begun." });
    next();
  }
}

function options(id, engine) {
  const { file, details, meter: pace } = engine;
  const { title = "", owner = "", tier = "" } = details;
  return {
    endpoint: ENDPOINT,
    metadata: Object.fromEntries(Object.entries({ filename: file.name, title, owner, tier }).filter(([, value]) => value)),
    retryDelays: PATIENCE_MS,
    removeFingerprintOnSuccess: true,
    onAfterResponse: refuseToForget,
    onProgress(sent) {
      engine.heardAt = Date.now();
      pace.note(sent, engine.heardAt);
      change(id, { sent, rate: pace.rate(), state: "running", sentence: "" });
    },
    onShouldRetry(error) {
      const status = statusOf(error);
      if (isHopeless(status)) return false;
      engine.heardAt = Date.now();
      pace.forget();
      change(id, { state: "lost", rate: 0, sentence: status === 423 ? "Another tab sends this file." : LOST });
      return true;
    },
    onError(error) {
      change(id, { state: "failed", rate: 0, sentence: sentenceOf(error) });
      if (statusOf(error) === 401) {
        interrupted.add(id);
        askSession();
      }
      next();
    },
    onSuccess({ lastResponse }) {
      const video = Number(lastResponse.getHeader("Vlog-Video-Id")) || null;
      change(id, { state: "done", sent: file.size, rate: 0, video });
      say(`“${file.name}” is uploaded.`, video ? { action: "Watch", act: () => (location.hash = `#/videos/${video}`) } : {});
      refresh();
      next();
    },
  };
}

function sentenceOf(error) {
  try {
    return JSON.parse(error.originalResponse.getBody()).detail;
  } catch {
    return statusOf(error) === 401 ? "Please sign in, and go on." : "The upload failed.";
  }
}

export function pause(id) {
  engines.get(id)?.upload?.abort();
  engines.get(id)?.meter.forget();
  change(id, { state: "paused", rate: 0, sentence: "" });
  next();
}

export function resume(id) {
  interrupted.delete(id);
  change(id, { state: "waiting", sentence: "" });
  next();
}

/** Stop for good, and let the server forget what it has: that may take long, and nobody waits for it. */
export function cancel(id) {
  const { upload } = engines.get(id) ?? {};
  if (upload?.url) givenUp.add(upload.url);
  transfers.set(transfers.get().filter((one) => one.id !== id));
  engines.delete(id);
  interrupted.delete(id);
  upload?.abort(true).catch(() => null); // what stays behind expires
  next();
}

export function clearDone() {
  for (const { id, state } of transfers.get()) if (state === "done") engines.delete(id);
  transfers.set(transfers.get().filter((one) => one.state !== "done"));
}

/** Ask anew how much is there, and go on from that. */
async function again(id) {
  const engine = engines.get(id);
  if (!engine?.upload) return; // it is about to begin
  await engine.upload.abort();
  engine.heardAt = Date.now();
  if (stateOf(id) === "lost") engine.upload.start();
}

// Who is back need not wait for the next try.
addEventListener("online", () => {
  for (const { id, state } of transfers.get()) if (state === "lost") again(id);
});

setInterval(() => {
  for (const one of transfers.get()) {
    if (!isStalled(one, engines.get(one.id)?.heardAt, Date.now())) continue;
    change(one.id, { state: "lost", rate: 0, sentence: LOST });
    again(one.id);
  }
}, LOOK_MS);

// Nothing is sent in the name of somebody who has left; who comes back goes on.
let isOut = false;
session.watch((who) => {
  const wasOut = isOut;
  isOut = who?.signed_in === false;
  if (wasOut && !isOut) [...interrupted].forEach(resume);
  if (!isOut) return;
  for (const { id, state } of transfers.get()) {
    if (!GOING.includes(state)) continue;
    pause(id);
    interrupted.add(id);
  }
});
