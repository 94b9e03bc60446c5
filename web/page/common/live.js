// Server-sent events that come back by themselves. A stream begins with how things are, so nothing is missed.
import { askSession } from "./api.js";
import { store } from "./store.js";
import { useEffect, useRef } from "./view.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15000;
const SILENT_MS = 75000; // a ping comes every thirty seconds: a stream without two of them is dead, and nobody said so
const HIDDEN_MS = 20000; // browsers open six connections to a host: a page that nobody looks at gives its own back

/** "live", "waiting" while a stream is opened anew, "quiet" when there is nothing to follow. */
export const connection = store("quiet");
const open = new Set();
const broken = new Set();

function tell() {
  connection.set(broken.size ? "waiting" : open.size ? "live" : "quiet");
}

/**
 * Follow a stream until the returned function is called.
 * @param {Record<string, (data: any) => void>} handlers by the name of the event
 * @param {() => void} [onOpen] called at each connection but the first: what else is shown may be old
 */
export function follow(url, handlers, onOpen) {
  const me = {};
  /** @type {EventSource | null} */
  let source = null;
  let wait = FIRST_WAIT_MS;
  let timer = 0;
  let silence = 0;
  let opened = false;

  function connect() {
    source = new EventSource(url);
    heard(); // from here on: one that is never answered is dead too
    source.onopen = () => {
      wait = FIRST_WAIT_MS;
      heard();
      open.add(me);
      broken.delete(me);
      tell();
      if (opened) onOpen?.();
      opened = true;
    };
    source.onerror = () => {
      open.delete(me);
      broken.add(me);
      tell();
      if (source?.readyState !== EventSource.CLOSED) return heard(); // the browser tries again by itself
      clearTimeout(silence);
      askSession(); // it was refused, and does not say why
      timer = setTimeout(connect, wait);
      wait = Math.min(LONGEST_WAIT_MS, wait * 2);
    };
    source.addEventListener("ping", heard);
    for (const [name, handle] of Object.entries(handlers))
      source.addEventListener(name, (event) => {
        heard();
        handle(JSON.parse(/** @type {MessageEvent} */ (event).data));
      });
  }

  function heard() {
    clearTimeout(silence);
    silence = setTimeout(() => {
      leave();
      broken.add(me);
      tell();
      connect();
    }, SILENT_MS);
  }

  function leave() {
    clearTimeout(timer);
    clearTimeout(silence);
    source?.close();
    source = null;
    open.delete(me);
    broken.delete(me);
    tell();
  }

  let hiding = 0;
  function seen() {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(leave, HIDDEN_MS);
    else if (!source) connect();
  }

  document.addEventListener("visibilitychange", seen);
  connect();
  return () => {
    document.removeEventListener("visibilitychange", seen);
    clearTimeout(hiding);
    leave();
  };
}

/** Follow a stream for as long as something is shown; a null address follows nothing. */
export function useLive(url, handlers, onOpen) {
  const newest = useRef({ handlers, onOpen });
  newest.current = { handlers, onOpen };
  const names = Object.keys(handlers).join(" ");
  useEffect(() => {
    if (!url) return undefined;
    const through = Object.fromEntries(
      names.split(" ").map((name) => [name, (data) => newest.current.handlers[name]?.(data)]),
    );
    return follow(url, through, () => newest.current.onOpen?.());
  }, [url, names]);
}
