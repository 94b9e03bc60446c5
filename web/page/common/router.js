// Where one is: `#/videos/12`, `#/?status=ready`. The address bar is the only memory of it.
import { store } from "./store.js";

/** @returns {{path: string[], query: Record<string, string>, hash: string}} */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean), query: Object.fromEntries(new URLSearchParams(query)), hash };
}

export const route = store(parse(globalThis.location?.hash ?? ""));

export function href(path, query = {}) {
  const kept = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/${path}${kept ? `?${kept}` : ""}`;
}

export function go(path, query = {}, { replace = false } = {}) {
  const address = href(path, query);
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  arrive();
}

function arrive() {
  route.set(parse(location.hash));
}

/** Scroll positions by address: who comes back to the library finds it where they left it. */
const heights = new Map();

export function listen() {
  history.scrollRestoration = "manual";
  addEventListener("scroll", () => heights.set(location.hash, scrollY), { passive: true });
  addEventListener("popstate", () => {
    const height = heights.get(location.hash) ?? 0;
    arrive();
    requestAnimationFrame(() => scrollTo(0, height));
  });
}
