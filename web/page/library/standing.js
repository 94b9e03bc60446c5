// How a video stands, in a word. Pure.
import { percent } from "../common/words.js";

/** What kind of state it is: its status, but a pause and a cancel are told apart, for somebody wished for them. */
export function standing({ status, state, error_code: code, deleted_at: deleted }) {
  if (deleted) return "deleted";
  if (status === "failed") return code === "CANCELLED" ? "cancelled" : "failed";
  return status !== "ready" && state === "paused" ? "paused" : status;
}

/** The same as it is read; how far it is comes by the stream, a moment after the list. */
export function word(video) {
  const { percent: far, missing } = video;
  const kind = standing(video);
  if (kind === "paused") return far ? `paused, ${percent(far)}` : "paused";
  if (kind === "pending") return far ? `waiting, ${percent(far)}` : "waiting";
  if (kind === "processing") return far == null ? "working" : percent(far);
  return kind === "ready" && missing?.length ? `ready, ${missing.length} missing` : kind;
}
