// The API over HTTP. Every answer is JSON, every error has a code and a sentence.
import { store } from "./store.js";

/** Whether who looks may command: null until it was asked. */
export const session = store(/** @type {null | {signed_in: boolean, secret_required: boolean}} */ (null));

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

const AWAY = "VLog does not answer. It is tried again by itself.";

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, signal?: AbortSignal}} [options]
 */
export async function ask(method, path, { body, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "OFFLINE", AWAY);
  }
  const told = await answer.json().catch(() => null);
  if (answer.ok) return told;
  if (answer.status === 401) session.set({ signed_in: false, secret_required: true });
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
