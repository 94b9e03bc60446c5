// One video: it plays, and below it one sees how it was, or is being, made.
import { post } from "../common/api.js";
import { Icon } from "../common/icons.js";
import { Bar, Broken, Empty, State } from "../common/states.js";
import { attempt } from "../common/toasts.js";
import { html, useEffect } from "../common/view.js";
import { bytes, clock, moment, percent } from "../common/words.js";
import { Player } from "../player/player.js";
import { Actions } from "./actions.js";
import { Events } from "./events.js";
import { useVideo } from "./following.js";
import { Qualities } from "./qualities.js";
import { Report } from "./report.js";
import { Sharing } from "./sharing.js";
import { Timeline } from "./timeline.js";

export function Video({ id }) {
  const { video, error, progress, job, steps, events, told, reload } = useVideo(id);
  useEffect(() => {
    if (video) document.title = `${video.title} – VLog`;
  }, [video?.title]);
  if (error?.status === 404) return html`<${Gone} id=${id} reload=${reload} />`;
  if (error && !video) return html`<${Broken} error=${error} again=${reload} />`;
  if (!video) return html`<${Ghost} />`;
  return html`<article class="video">
    <header class="video-head">
      <a class="plain-button back" href="#/" aria-label="To the library"><${Icon} name="back" /></a>
      <div>
        <h1 dir="auto">${video.title}</h1>
        <p class="meta">
          <${State} of=${state(video, progress)} word=${word(video, progress)} />
          ${video.duration > 0 && html`<span>${clock(video.duration)}</span>`}
          ${video.source_width > 0 && html`<span>${video.source_width}×${video.source_height}</span>`}
          <span>${bytes(video.source_size_bytes)}</span>
          ${video.owner && html`<a href="#/?owner=${encodeURIComponent(video.owner)}" dir="auto">${video.owner}</a>`}
          <span>${job?.tier ?? video.tier}</span><time datetime=${video.created_at}>${moment(video.created_at)}</time>
        </p>
      </div>
      <${Actions} video=${video} job=${job} progress=${progress} reload=${reload} />
    </header>
    ${video.error_message && html`<p class="note ${video.error_code === "CANCELLED" ? "" : "bad"}"><b>${video.error_message}</b> <span class="code">${video.error_code}</span></p>`}
    ${video.missing.length > 0 &&
    html`<p class="note warn">Missing: ${video.missing.map((one) => `${one.name} (${one.sentence})`).join(", ")}. A retry makes just what is missing.</p>`}
    <div class="video-main">
      <${Screen} video=${video} progress=${progress} />
      ${progress || job || !video.job_id
        ? html`<div class="video-side">
            <${Qualities} video=${video} progress=${progress} job=${job} />
            <${Sharing} video=${video} reload=${reload} />
          </div>`
        : html`<div class="panel ghost" aria-hidden="true"><i class="line"></i><i class="line short"></i></div>`}
    </div>
    ${told &&
    html`<${Timeline} steps=${steps} job=${job} />
      <div class="two">
        <${Report} video=${video} job=${job} steps=${steps} />
        <${Events} events=${events} />
      </div>`}
  </article>`;
}

/** A retranscode runs behind a video that is ready all the while. */
function state(video, progress) {
  if (progress?.state === "paused") return "paused";
  if (video.status === "failed" && video.error_code === "CANCELLED") return "cancelled";
  return progress?.status ?? video.status;
}

function word(video, progress) {
  const status = progress?.status ?? video.status;
  if (progress?.state === "paused") return "paused";
  if (status === "processing") return `${progress?.step?.replace(/_/g, " ") ?? "working"}, ${percent(progress?.percent)}`;
  if (status === "pending") return progress?.state === "retrying" ? "waiting to try again" : "waiting for a worker";
  if (status === "failed" && video.error_code === "CANCELLED") return "cancelled";
  const behind = status === "ready" && ["claimed", "unclaimed", "retrying", "expired"].includes(progress?.state);
  return behind ? `ready, made anew: ${percent(progress.percent)}` : status;
}

function Screen({ video, progress }) {
  const folder = video.stream_url?.replace(/[^/]*$/, "");
  if (!video.stream_url) return html`<${Waiting} video=${video} progress=${progress} />`;
  const growing = video.status !== "ready";
  // The newest stream of a retranscode has the same address.
  const fresh = growing ? "growing" : video.qualities.map((one) => one.size_bytes).join();
  return html`<${Player} key=${video.slug} url=${video.stream_url} poster=${video.thumbnail_url} title=${video.title}
    storyboard=${growing ? null : `${folder}storyboard.vtt`} known=${video.duration} growing=${growing} fresh=${fresh} />`;
}

function Waiting({ video, progress }) {
  const failed = video.status === "failed";
  const paused = !failed && progress?.state === "paused";
  return html`<div class="player ${failed ? "is-short" : ""}"><div class="player-wait">
    <${Icon} name=${failed ? "warn" : paused ? "pause" : "film"} size=${34} />
    <h2>${failed ? "There is nothing to play" : paused ? "It is paused" : "It plays soon"}</h2>
    <p>${failed ? "Its source is kept: it can be tried again." : paused ? "Resume it, and it goes on where it stopped." : "As soon as the start is encoded, while the rest is made."}</p>
    ${!failed && html`<${Bar} percent=${progress?.percent} label="Progress" />`}
  </div></div>`;
}

function Gone({ id, reload }) {
  const restore = () => attempt(() => post(`/api/videos/${id}/restore`), "It is back.").then(reload);
  return html`<${Empty} title="There is no video ${id}" icon="trash">
    <p>It may have been deleted. What was deleted can be restored for some time.</p>
    <p><button class="button" onClick=${restore}>Restore it</button> <a class="button quiet" href="#/">To the library</a></p>
  <//>`;
}

function Ghost() {
  return html`<div class="video" aria-busy="true" aria-label="Loading">
    <div class="video-head"><div class="ghost"><i class="line short"></i><i class="line short"></i></div></div>
    <div class="video-main"><div class="player"></div><div class="panel"></div></div>
  </div>`;
}
