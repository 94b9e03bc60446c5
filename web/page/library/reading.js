// What was read of the library, page by page. It is given a way to ask and a place to keep, and knows of nothing else.

const KEPT_MS = 2000;

/**
 * @typedef {object} Known
 * @property {any} filters what is wanted
 * @property {any} shown what the videos were read with; null until some were
 * @property {any[]} items
 * @property {string | null} next where the list goes on; null at its end
 * @property {boolean} readingOn
 * @property {number} rounds how often reading on has ended, well or not
 * @property {number} failures how often in a row it did not go well
 * @property {any} error
 * @property {number} read when the first page was
 */

/** @type {Known} */
export const NOTHING = {
  filters: {}, shown: null, items: [], next: null, readingOn: false, rounds: 0, failures: 0, error: null, read: 0,
};

const NAMES = ["status", "owner", "tier", "search"];
const same = (one, other) => NAMES.every((name) => (one[name] || "") === (other[name] || ""));

/** What is shown is not what is wanted: it is being looked for. */
export const isOld = ({ shown, filters }) => Boolean(shown) && !same(shown, filters);

/** Whoever sees the end of the list and is told yes calls `more`, which then never refuses: nothing waits for nobody. */
export const canReadOn = (known) => Boolean(known.next) && !known.readingOn && !isOld(known);

/** How long to leave a service alone that could not answer so many times, in milliseconds. */
export const patience = (failures) => Math.min(15000, 1000 * 2 ** (failures - 1));

/**
 * @param {(filters: any, cursor: string | null, signal: AbortSignal) => Promise<{items: any[], next_cursor: string | null}>} ask
 * @param {{get: () => Known, set: (known: Known) => void}} kept
 */
export function reading(ask, kept) {
  let stop = new AbortController(); // one per choice of filters: another choice ends what was asked for this one
  /** @type {Promise<void> | null} */
  let first = null;

  const set = (news) => kept.set({ ...kept.get(), ...news });

  /** Show what fits the filters; what is known is shown at once and read anew. */
  async function show(filters) {
    const { shown, read, error } = kept.get();
    if (!same(filters, kept.get().filters)) {
      stop.abort();
      stop = new AbortController();
      first = null;
      set({ filters, readingOn: false, failures: 0, error: null });
    } else if (shown && !error && Date.now() - read < KEPT_MS) return;
    await refresh();
  }

  /** Read the first page anew and keep what lies behind it; who asks while it is being read hears of that. */
  function refresh() {
    if (!first) {
      const mine = readFirst(stop).finally(() => {
        if (first === mine) first = null;
      });
      first = mine;
    }
    return first;
  }

  async function readFirst(mine) {
    const { filters } = kept.get();
    try {
      const page = await ask(filters, null, mine.signal);
      if (mine !== stop) return;
      const before = kept.get();
      // The list does not say how far a video is; the stream said it, and says it again only when it changes.
      const far = new Map(before.items.map(({ video_id: id, percent, state, step }) => [id, { percent, state, step }]));
      const items = page.items.map((video) => ({ ...far.get(video.video_id), ...video }));
      const rest = isOld(before) || !page.next_cursor ? [] : behind(before.items, page.items);
      const next = rest.length ? before.next : page.next_cursor;
      set({ shown: filters, items: [...items, ...rest], next, error: null, read: Date.now() });
    } catch (error) {
      if (mine === stop) set({ error });
    }
  }

  /** Read the page behind the last one. */
  async function more() {
    const before = kept.get();
    if (!canReadOn(before)) return;
    const mine = stop;
    set({ readingOn: true });
    let page;
    try {
      page = await ask(before.filters, before.next, mine.signal);
    } catch (error) {
      if (mine === stop) set({ readingOn: false, rounds: before.rounds + 1, failures: before.failures + 1, error });
      return;
    }
    if (mine !== stop) return;
    const now = kept.get();
    // The first page may have been read anew meanwhile, and so differently that the list begins anew behind it.
    const fits = now.next === before.next;
    const items = fits ? [...now.items, ...page.items] : now.items;
    const next = fits ? page.next_cursor : now.next;
    set({ items, next, readingOn: false, rounds: before.rounds + 1, failures: 0, error: null });
  }

  /** Put news of one video where it is; news of a video that is not listed is nothing here. */
  function change(id, news) {
    set({ items: kept.get().items.map((video) => (video.video_id === id ? { ...video, ...news } : video)) });
  }

  function forget(id) {
    set({ items: kept.get().items.filter((video) => video.video_id !== id) });
  }

  return { show, refresh, more, change, forget };
}

/**
 * Of what was known, give what lies behind the new first page; nothing where videos between the two may be missing.
 * By their numbers, which are the order of the list: the last of the page may be one that was not known. Pure.
 */
export function behind(known, first) {
  const last = first.at(-1)?.video_id;
  return known[0]?.video_id >= last ? known.filter((video) => video.video_id < last) : [];
}
