// What the service tells of itself: its ladder, and where Temporal's own page is.
import { get } from "../common/api.js";
import { store } from "../common/store.js";

export const about = store(/** @type {any} */ (null));

export async function askAbout() {
  about.set(await get("/api/about").catch(() => null));
}

const LOCAL = /^(localhost|127\.|\[::1\])/;

/** An address on the service's own machine is of use to those who sit at it. */
export function workflowUrl(known, workflow, here = location.hostname) {
  if (!known?.temporal_ui_url || !workflow) return null;
  const url = new URL(known.temporal_ui_url);
  if (LOCAL.test(url.hostname) && !LOCAL.test(here)) return null;
  return `${url.href.replace(/\/$/, "")}/namespaces/${encodeURIComponent(known.temporal_namespace)}/workflows/${encodeURIComponent(workflow)}`;
}
