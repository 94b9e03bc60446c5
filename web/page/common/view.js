// Preact, its hooks and htm, under one roof: every other module takes them from here.
import { h, render } from "../lib/preact.js";
import { useEffect, useState } from "../lib/hooks.js";
import htm from "../lib/htm.js";

export { render };
export * from "../lib/hooks.js";
export const html = htm.bind(h);

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
