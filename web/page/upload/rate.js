// How fast bytes go, over the last few seconds. Pure.

const WINDOW_MS = 6000;

export function meter() {
  /** @type {[number, number][]} */
  let seen = [];
  return {
    /** Note how many have been sent by now; a smaller number than before begins anew. */
    note(sent, now) {
      if (seen.length && sent < seen[seen.length - 1][1]) seen = [];
      seen.push([now, sent]);
      while (seen.length > 2 && now - seen[0][0] > WINDOW_MS) seen.shift();
    },
    /** Bytes a second; 0 when nothing can be said yet. */
    rate() {
      if (seen.length < 2) return 0;
      const [[from, first], [to, last]] = [seen[0], seen[seen.length - 1]];
      return to > from ? ((last - first) * 1000) / (to - from) : 0;
    },
    forget() {
      seen = [];
    },
  };
}
