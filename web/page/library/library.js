// The library: every video, newest first, with what is going on.
import { get } from "../common/api.js";
import { useEvery } from "../common/asking.js";
import { Icon } from "../common/icons.js";
import { useLive } from "../common/live.js";
import { Broken, Empty } from "../common/states.js";
import { useStore } from "../common/store.js";
import { html, useEffect, useRef } from "../common/view.js";
import { Ghost } from "./card.js";
import { Cards } from "./cards.js";
import { Filters } from "./filters.js";
import { change, forget, list, more, refresh, show } from "./list.js";

const LOOK_MS = 8000; // new videos announce themselves to nobody
const FOLLOWED = 150;
const GHOSTS = Array.from({ length: 12 }, (_, index) => index);

export function Library({ query }) {
  const { items, next, state, error } = useStore(list);
  const { status, owner, tier, search } = query;
  useEffect(() => void show({ status, owner, tier, search }), [status, owner, tier, search]);
  useEvery(LOOK_MS, refresh);
  useFollowed(items);

  if (state === "broken") return html`<${Broken} error=${error} again=${refresh} />`;
  const filtered = status || owner || tier || search;
  return html`<section class="library" aria-label="Library">
    <h1 class="hidden">Library</h1>
    <${Filters} query=${query} />
    ${error && html`<p class="note bad" role="alert">${error.message}</p>`}
    ${state === "loading" && html`<div class="cards" aria-busy="true">${GHOSTS.map((key) => html`<${Ghost} key=${key} />`)}</div>`}
    ${state !== "loading" && !items.length && (filtered ? html`<${Nothing} />` : html`<${First} />`)}
    ${items.length > 0 &&
    html`<${Cards} items=${items} query=${query} old=${state === "searching"} />`}
    ${next && html`<${More} busy=${state === "more"} />`}
  </section>`;
}

/** Hear of those that are not done, and read anew what has ended. */
function useFollowed(items) {
  const ids = items
    .filter((video) => video.status === "pending" || video.status === "processing")
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
  return html`<${Empty} title="Nothing fits" icon="search">
    <p>No video is like that.</p>
    <p><a class="button" href="#/">Show all videos</a></p>
  <//>`;
}

/** The end of the list: reads on when it comes into view. */
function More({ busy }) {
  const end = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && more(), {
      rootMargin: "600px",
    });
    seen.observe(end.current);
    return () => seen.disconnect();
  }, [busy]);
  return html`<div class="more" ref=${end}>
    <button class="button" disabled=${busy} onClick=${more}>${busy ? "Loading …" : "Show more"}</button>
  </div>`;
}
