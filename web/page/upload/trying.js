// When an upload is worth another try. Pure.

// Silence, an earlier request of ours that is not over yet, too many of us, bytes that were changed on the way.
const MENDS_ITSELF = new Set([408, 409, 423, 429, 460]);
const FORGOTTEN = new Set([404, 410]);

export function isHopeless(status) {
  return status === 501 || status === 507 || (status >= 400 && status < 500 && !MENDS_ITSELF.has(status));
}

/**
 * Stop tus-js-client from beginning anew: it does so whenever it may not look at what is there, also when the session
 * is over or the API is being restarted. Only what the server has forgotten is begun anew.
 */
export function refuseToForget(request, response) {
  const status = response.getStatus();
  if (request.getMethod() !== "HEAD" || status < 400 || status === 423 || FORGOTTEN.has(status)) return;
  throw Object.assign(new Error("It could not be looked at."), { status });
}

const STALL_MS = 45000; // the server lets go of who says nothing for thirty seconds

/** A network that is gone without a word is noticed by nobody but who counts; the last answer may take its time, a try anew not. */
export function isStalled({ state, sent, size }, heardAt, now) {
  return (state === "lost" || (state === "running" && sent < size)) && now - heardAt > STALL_MS;
}

/** Give the status of what went wrong; 0 when nobody answered. */
export function statusOf(error) {
  return error.originalResponse?.getStatus() ?? error.causingError?.status ?? 0;
}
