// One video of the library.
import { href } from "../common/router.js";
import { Bar, State } from "../common/states.js";
import { html, useState } from "../common/view.js";
import { ago, clock } from "../common/words.js";
import { standing, word } from "./standing.js";

export function Card({ video, query, place, of }) {
  const working = !video.deleted_at && (video.status === "processing" || video.status === "pending");
  return html`<li class="card" aria-posinset=${place} aria-setsize=${of}>
    <a class="card-link" href="#/videos/${video.video_id}">
      <${Picture} video=${video}>
        ${video.duration > 0 && html`<span class="on-picture">${clock(video.duration)}</span>`}
        ${working && html`<${Bar} percent=${video.percent} label="Progress" kind=${video.status === "pending" ? "calm" : "busy"} />`}
      <//>
      <h2 dir="auto" title=${video.title}>${video.title}</h2>
    </a>
    <p class="card-line">
      <${State} of=${standing(video)} word=${word(video)} />
      ${video.playable_at && working && html`<span class="good-text">plays already</span>`}
      ${standing(video) === "failed" && html`<span class="why muted" title=${video.error_message}>${video.error_message}</span>`}
    </p>
    <p class="card-line muted">
      ${video.owner && html`<a href=${href("", { ...query, owner: video.owner })} title="Only videos of ${video.owner}" dir="auto">${video.owner}</a>`}
      <a class="of-tier" href=${href("", { ...query, tier: video.tier })} title="Only ${video.tier}">${video.tier}</a><time datetime=${video.created_at}>${ago(video.created_at)}</time>
    </p>
  </li>`;
}

function Picture({ video, children }) {
  const [broken, setBroken] = useState(false);
  const shown = video.thumbnail_url && !video.deleted_at && !broken; // what is deleted shows nothing of itself
  return html`<span class="picture ${shown ? "" : "is-empty"} ${standing(video)}">
    ${shown
      ? html`<img src=${video.thumbnail_url} alt="" loading="lazy" decoding="async" onError=${() => setBroken(true)} />`
      : html`<span class="initial" aria-hidden="true">${[...video.title][0]?.toUpperCase()}</span>`}
    ${children}
  </span>`;
}

export function Ghost() {
  return html`<div class="card ghost" aria-hidden="true">
    <span class="picture is-empty"></span><i class="line"></i><i class="line short"></i>
  </div>`;
}
