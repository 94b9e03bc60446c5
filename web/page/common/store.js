// A value that several parts of the page look at.
import { useEffect, useState } from "./view.js";

/**
 * @template T
 * @param {T} value
 */
export function store(value) {
  /** @type {Set<(value: T) => void>} */
  const watchers = new Set();
  return {
    get: () => value,
    /** @param {T} next */
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const watcher of [...watchers]) watcher(value);
    },
    /** @param {(value: T) => void} watcher */
    watch(watcher) {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** Render anew whenever the value changes. */
export function useStore(kept) {
  const [value, setValue] = useState(kept.get());
  useEffect(() => {
    setValue(kept.get()); // it may have changed between rendering and now
    const stop = kept.watch(setValue);
    return () => void stop();
  }, [kept]);
  return value;
}
