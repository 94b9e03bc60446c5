// The videos that were read so far, kept while one looks at something else.
import { get, withQuery } from "../common/api.js";
import { store } from "../common/store.js";

const FIRST = 48; // a few screens, soon; who goes on reading gets more at a time
const NEXT = 96;
const KEPT_MS = 2000;

/** @type {{filters: any, items: any[], next: string | null, state: string, error: any, read: number}} */
const NOTHING = { filters: {}, items: [], next: null, state: "loading", error: null, read: 0 };
export const list = store(NOTHING);
let turn = 0;

const address = (filters, cursor) => withQuery("/api/videos", { ...filters, limit: cursor ? NEXT : FIRST, cursor });
const same = (one, other) => address(one, "") === address(other, "");

/** Show what fits the filters; what is known is shown at once and read anew. */
export async function show(filters) {
  if (!same(filters, list.get().filters) || !list.get().read) {
    // While others are looked for, those before stay in their places.
    list.set({ ...list.get(), filters, state: list.get().read ? "searching" : "loading", error: null });
  } else if (Date.now() - list.get().read < KEPT_MS) return;
  await refresh();
}

/** Read the first page anew and keep what lies behind it. */
export async function refresh() {
  const { filters, state } = list.get();
  if (state === "more") return; // who reads on must not be sent back to the top by it
  turn += 1;
  const mine = turn;
  try {
    const page = await get(address(filters, ""));
    if (mine !== turn) return;
    const before = list.get();
    const going = before.state === "more"; // begun while this was asked
    const known = going || before.state === "ready" ? before.items : [];
    // The list does not say how far a video is; the stream said it, and says it again only when it changes.
    const far = new Map(before.items.map(({ video_id: id, percent, state, step }) => [id, { percent, state, step }]));
    const items = page.items.map((video) => ({ ...far.get(video.video_id), ...video }));
    const rest = page.next_cursor ? behind(known, page.items) : [];
    const next = rest.length ? before.next : page.next_cursor;
    list.set({ filters, items: [...items, ...rest], next, state: going ? "more" : "ready", error: null, read: Date.now() });
  } catch (error) {
    if (mine === turn) list.set({ ...list.get(), state: list.get().items.length ? "ready" : "broken", error });
  }
}

export async function more() {
  const before = list.get();
  if (!before.next || before.state !== "ready") return;
  list.set({ ...before, state: "more" });
  const mine = turn;
  try {
    const page = await get(address(before.filters, before.next));
    if (mine !== turn) return;
    const items = [...list.get().items, ...page.items];
    list.set({ ...list.get(), items, next: page.next_cursor, state: "ready", error: null });
  } catch (error) {
    if (mine === turn) list.set({ ...list.get(), state: "ready", error });
  }
}

/** Put news of one video where it is; news of a video that is not listed is nothing here. */
export function change(id, news) {
  const before = list.get();
  const items = before.items.map((video) => (video.video_id === id ? { ...video, ...news } : video));
  list.set({ ...before, items });
}

export function forget(id) {
  list.set({ ...list.get(), items: list.get().items.filter((video) => video.video_id !== id) });
}

/** Of what was known, give what is older than the last of the new first page. Pure. */
export function behind(known, first) {
  const last = first.at(-1);
  if (!last) return [];
  const at = known.findIndex((video) => video.video_id === last.video_id);
  const fresh = new Set(first.map((video) => video.video_id));
  return at < 0 ? [] : known.slice(at + 1).filter((video) => !fresh.has(video.video_id));
}
