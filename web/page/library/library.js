// The library: every video, newest first, with what is going on.
import { get } from "../common/api.js";
import { useEvery } from "../common/asking.js";
import { Icon } from "../common/icons.js";
import { useLive } from "../common/live.js";
import { Broken, Empty } from "../common/states.js";
import { html, useEffect, useRef, useStore } from "../common/view.js";
import { Ghost } from "./card.js";
import { Cards } from "./cards.js";
import { Filters } from "./filters.js";
import { change, forget, list, more, refresh, show } from "./list.js";
import { canReadOn, isOld, patience } from "./reading.js";

const LOOK_MS = 8000; // new videos announce themselves to nobody
const FOLLOWED = 150;
const GHOSTS = Array.from({ length: 12 }, (_, index) => index);

export function Library({ query }) {
  const known = useStore(list);
  const { items, next, shown, error } = known;
  const { status, owner, tier, search } = query;
  useEffect(() => void show({ status, owner, tier, search }), [status, owner, tier, search]);
  useEvery(LOOK_MS, refresh);
  useFollowed(items);

  if (!shown && error) return html`<${Broken} error=${error} again=${refresh} />`;
  const filtered = shown && Object.values(shown).some(Boolean);
  return html`<section class="library" aria-label="Library">
    <h1 class="hidden">Library</h1>
    <${Filters} query=${query} />
    ${error && !known.failures && html`<p class="note bad" role="alert">${error.message}</p>`}
    ${!shown && html`<div class="cards" aria-busy="true">${GHOSTS.map((key) => html`<${Ghost} key=${key} />`)}</div>`}
    ${shown && !items.length && (filtered ? html`<${Nothing} />` : html`<${First} />`)}
    ${items.length > 0 && html`<${Cards} items=${items} query=${query} old=${isOld(known)} />`}
    ${next && html`<${More} known=${known} />`}
  </section>`;
}

/** Hear of those that are not done, and read anew what has ended. */
function useFollowed(items) {
  const ids = items
    .filter((video) => !video.deleted_at && (video.status === "pending" || video.status === "processing"))
    .slice(0, FOLLOWED)
    .map((video) => video.video_id);
  const url = ids.length ? `/api/events/progress?video_ids=${ids.join(",")}` : null;
  const handlers = Object.fromEntries(
    ids.flatMap((id) => [
      [`transcode_progress:${id}`, ({ status, percent, state, step }) => change(id, { status, percent, state, step })],
      [`transcode_complete:${id}`, () => get(`/api/videos/${id}`).then((video) => change(id, video), () => null)],
      [`video_deleted:${id}`, () => forget(id)],
    ]),
  );
  useLive(url, handlers, refresh);
}

function First() {
  return html`<${Empty} title="No videos yet" icon="film">
    <p>Drop a video anywhere on this page, or choose one.</p>
    <p><a class="button primary" href="#/upload"><${Icon} name="upload" />Upload a video</a></p>
  <//>`;
}

function Nothing() {
  return html`<${Empty} title="No videos found" icon="search">
    <p>None fits this search and these filters.</p>
    <p><a class="button" href="#/">Show all videos</a></p>
  <//>`;
}

/** The end of the list: reads on while it is in view. */
function More({ known }) {
  const end = useRef(/** @type {any} */ (null));
  const ready = canReadOn(known);
  const { readingOn, rounds, failures, error } = known;
  useEffect(() => {
    if (!ready) return undefined;
    // A new observer each time: it begins with how things are, and so misses no end that has been in view all along.
    const seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && more(), {
      rootMargin: "600px",
    });
    const timer = setTimeout(() => seen.observe(end.current), failures && patience(failures));
    return () => {
      clearTimeout(timer);
      seen.disconnect();
    };
  }, [ready, rounds]);
  const word = readingOn ? "Loading …" : failures ? "Try again" : "Show more";
  return html`<div class="more" ref=${end}>
    ${failures > 0 && error && html`<p class="bad-text" role="alert">${error.message}</p>`}
    <button class="button" disabled=${!ready} onClick=${more}>${word}</button>
  </div>`;
}
