// Who may see it: published or not, its public address, and what to paste into another page.
import { post, session } from "../common/api.js";
import { copy } from "../common/copying.js";
import { Icon } from "../common/icons.js";
import { attempt, say } from "../common/toasts.js";
import { html, useState, useStore } from "../common/view.js";
import { moment } from "../common/words.js";

export function Sharing({ video, reload }) {
  const who = useStore(session);
  const [link, setLink] = useState(/** @type {any} */ (null));
  if (video.status !== "ready") return null;
  const open = !who?.secret_required || !!video.published_at;
  const address = `${location.origin}/watch/${encodeURIComponent(video.slug)}`;
  const act = (verb, done) => attempt(() => post(`/api/videos/${video.video_id}/${verb}`), done).then(reload);
  async function sign() {
    const made = await attempt(() => post(`/api/videos/${video.video_id}/links`, {}));
    if (made) setLink({ address: new URL(made.url, location.href).href, until: moment(made.expires_at) });
  }
  return html`<section class="panel" aria-label="Share">
    <header><h2>Share</h2>
      ${who?.secret_required &&
      (video.published_at
        ? html`<button class="button small" onClick=${() => act("unpublish", "Nobody sees it any more.")}>Unpublish</button>`
        : html`<button class="button small primary" onClick=${() => act("publish", "Everybody may watch it.")}>Publish</button>`)}
    </header>
    ${open
      ? html`<${Copied} label="Public page" text=${address} link />
          <${Copied} label="Embed" text=${snippet(address, video.title)} />`
      : html`<p class="muted">Only you see it. Publish it, or give somebody a link that expires.</p>
          <button class="button small" onClick=${sign}><${Icon} name="link" size=${15} />Make a link</button>
          ${link && html`<${Copied} label="Until ${link.until}" text=${link.address} link />`}`}
  </section>`;
}

/** What another site pastes; quotes in a title must not end the attribute. */
export function snippet(address, title) {
  const safe = title.replace(/&/g, "&amp;").replace(/"/g, "&quot;").replace(/</g, "&lt;");
  return `<iframe src="${address}" title="${safe}" width="640" height="360" allow="fullscreen; autoplay; picture-in-picture" allowfullscreen style="border:0"></iframe>`;
}

function Copied({ label, text, link }) {
  return html`<div class="share"><span class="muted">${label}</span>
    <p class="secret"><code>${link ? html`<a href=${text} target="_blank" rel="noopener">${text}</a>` : text}</code>
      <button class="plain-button" aria-label="Copy: ${label}" onClick=${() => copy(text).then(say)}><${Icon} name="copy" size=${16} /></button></p></div>`;
}
