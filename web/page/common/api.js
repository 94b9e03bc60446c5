// The API over HTTP. Every answer is JSON, every error has a code and a sentence.
import { store } from "./store.js";

/** Whether who looks may command: null until it was asked. */
export const session = store(/** @type {null | {signed_in: boolean, secret_required: boolean}} */ (null));
/** Whether somebody answered the last question. */
export const answering = store(true);
let asked = 0;
let answered = 0;
const OPEN = { signed_in: true, secret_required: false };

/** Find out who looks; it renews the cookie too. When nobody answers, what was known holds: all else says so by itself. */
export async function askSession() {
  const turn = (asked += 1);
  learn(await get("/api/session").catch(() => session.get() ?? OPEN), turn);
}

/** Take who looks from an answer; one that comes after the answer to a later question is old. */
export function learn(who, turn = (asked += 1)) {
  if (turn < answered) return;
  answered = turn;
  session.set(who);
}

export class ApiError extends Error {
  constructor(status, code, sentence) {
    super(sentence);
    this.status = status;
    this.code = code;
  }

  /** Nobody answered, or a neighbour of the API is away: trying again may help. */
  get passes() {
    return this.status === 0 || this.status >= 500;
  }
}

// Somebody who took a question and went away without a word (a machine that slept, a network that changed) is not
// waited for: what waits for an answer asks nothing else. A change may take its time, and is not repeated by itself.
const READ_MS = 30000;
const away = (method) =>
  new ApiError(0, "OFFLINE", `VLog does not answer. ${method === "GET" ? "It is tried again by itself." : "Please try again."}`);

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, signal?: AbortSignal}} [options]
 */
export async function ask(method, path, { body, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  const limit = method === "GET" ? AbortSignal.timeout(READ_MS) : undefined;
  const ends = [signal, limit].filter((end) => end !== undefined);
  // Browsers of before 2024 cannot wait for the first of two: there only who asks gives up.
  const end = ends.length > 1 ? (AbortSignal.any?.(ends) ?? signal) : ends[0];
  let answer;
  let told = /** @type {any} */ (null);
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal: end });
    if (answer.ok && answer.status !== 204) told = await answer.json(); // cut off half-way it is no answer
  } catch (error) {
    if (signal?.aborted) throw error;
    answering.set(false);
    throw away(method);
  }
  answering.set(true);
  if (answer.ok) return told;
  told = await answer.json().catch(() => null);
  if (answer.status === 401) askSession(); // not everything that asks for a secret asks for the one of the door
  throw new ApiError(answer.status, told?.error ?? "ERROR", told?.detail ?? `VLog answered ${answer.status}.`);
}

/** @param {AbortSignal} [signal] */
export const get = (path, signal) => ask("GET", path, { signal });
export const post = (path, body) => ask("POST", path, { body });
export const put = (path) => ask("PUT", path);
export const remove = (path) => ask("DELETE", path);

/** Put parameters behind a path, leaving out what is empty. */
export function withQuery(path, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return query ? `${path}?${query}` : path;
}
