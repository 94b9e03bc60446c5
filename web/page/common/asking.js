// A hook around one address: what it answers, whether it failed, and a way to ask again.
import { get } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./view.js";

const AGAIN_MS = 3000;

/**
 * What was read stays on the page while it is read anew, so that nothing jumps.
 * @param {string | null} path null asks nothing
 */
export function useAsked(path) {
  const [state, setState] = useState(/** @type {any} */ ({ path, data: null, error: null }));
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((number) => number + 1), []);
  useEffect(() => {
    if (!path) return undefined;
    const stop = new AbortController();
    let again = 0;
    get(path, stop.signal).then(
      (data) => setState({ path, data, error: null }),
      (error) => {
        if (stop.signal.aborted) return;
        setState((before) => ({ path, data: before.path === path ? before.data : null, error }));
        if (error.passes) again = setTimeout(reload, AGAIN_MS);
      },
    );
    return () => {
      stop.abort();
      clearTimeout(again);
    };
  }, [path, round, reload]);
  const fresh = state.path === path;
  return { data: fresh ? state.data : null, error: fresh ? state.error : null, reload };
}

/** Call something every so often while the page is looked at, and not again before it has ended. */
export function useEvery(milliseconds, call) {
  const newest = useRef(call);
  newest.current = call;
  useEffect(() => {
    if (!milliseconds) return undefined;
    let busy = false;
    const timer = setInterval(async () => {
      if (busy || document.hidden) return;
      busy = true;
      try {
        await newest.current();
      } finally {
        busy = false;
      }
    }, milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
}

/** Give the time, and render anew every so often. */
export function useNow(milliseconds) {
  const [now, setNow] = useState(Date.now());
  useEvery(milliseconds, () => setNow(Date.now()));
  return milliseconds ? now : Date.now();
}
