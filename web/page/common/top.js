// What stays while one moves about: where to go, whether it is live, light or dark.
import { Icon } from "./icons.js";
import { answering, session } from "./api.js";
import { showKeys } from "./keys.js";
import { connection } from "./live.js";
import { signOut } from "./sign_in.js";
import { store } from "./store.js";
import { html, useEffect, useState, useStore } from "./view.js";

const PLACES = [
  { path: "", label: "Library", icon: "grid" },
  { path: "workers", label: "Workers", icon: "workers" },
  { path: "queues", label: "Queues", icon: "queues" },
];
const LIVE = { live: "Live", waiting: "Reconnecting", quiet: "Connected", offline: "Offline" };

export const online = store(navigator.onLine);
addEventListener("online", () => online.set(true));
addEventListener("offline", () => online.set(false));

export function Top({ here }) {
  const up = useStore(online);
  const link = useStore(connection);
  const heard = useStore(answering);
  const state = !up ? "offline" : heard ? link : "waiting";
  const who = useStore(session);
  return html`<header class="top">
    <a class="brand" href="#/" aria-label="VLog, library"><${Mark} /><span>VLog</span></a>
    <nav aria-label="Main">
      ${PLACES.map(
        (place) => html`<a href="#/${place.path}" aria-current=${here === place.path ? "page" : undefined}>
          <${Icon} name=${place.icon} /><span>${place.label}</span></a>`,
      )}
      <a class="go-upload" href="#/upload" aria-current=${here === "upload" ? "page" : undefined}>
        <${Icon} name="upload" /><span>Upload</span></a>
    </nav>
    <div class="top-end">
      <span class="live ${state}" title=${LIVE[state]}><i class="dot"></i><span>${LIVE[state]}</span></span>
      <button class="plain-button of-keys" aria-label="Keys" title="Keys" onClick=${showKeys}><${Icon} name="help" /></button>
      <${Theme} />
      ${who?.secret_required && html`<button class="button small quiet" onClick=${signOut}>Sign out</button>`}
    </div>
  </header>`;
}

export function Mark() {
  return html`<svg class="mark" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
    <rect width="32" height="32" rx="8" /><path d="M12.5 10.2v11.6c0 .8.9 1.3 1.6.9l9-5.8c.6-.4.6-1.4 0-1.8l-9-5.8c-.7-.4-1.6.1-1.6.9Z" />
    <path class="faint" d="M6.5 11.2c0-1.6 2.5-1.6 2.5 0v9.6c0 1.6-2.5 1.6-2.5 0z" /></svg>`;
}

function Theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const [chosen, setChosen] = useState(document.documentElement.dataset.theme);
  const [system, setSystem] = useState(dark.matches);
  useEffect(() => {
    const changed = () => setSystem(dark.matches);
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, []);
  const isDark = chosen ? chosen === "dark" : system;
  function turn() {
    const next = isDark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("vlog.theme", next);
    } catch {
      // It then holds until the page is closed.
    }
    setChosen(next);
  }
  const label = isDark ? "Use light colours" : "Use dark colours";
  return html`<button class="plain-button" aria-label=${label} title=${label} onClick=${turn}>
    <${Icon} name=${isDark ? "sun" : "moon"} /></button>`;
}
