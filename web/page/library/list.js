// The videos that were read so far, kept while one looks at something else.
import { get, withQuery } from "../common/api.js";
import { store } from "../common/store.js";
import { NOTHING, reading } from "./reading.js";

const FIRST = 48; // a few screens, soon; who goes on reading gets more at a time
const NEXT = 96;

export const list = store(NOTHING);

/** To a person deleted is a state like the others; the API has it beside them. */
function ask({ status, ...filters }, cursor, signal) {
  const wanted = status === "deleted" ? { deleted: true } : { status };
  return get(withQuery("/api/videos", { ...filters, ...wanted, limit: cursor ? NEXT : FIRST, cursor }), signal);
}

export const { show, refresh, more, change, forget } = reading(ask, list);
