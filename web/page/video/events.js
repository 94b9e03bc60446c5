// What happened, the newest on top.
import { html } from "../common/view.js";
import { spaced } from "../common/words.js";

export function Events({ events }) {
  const shown = [...events].reverse();
  return html`<section class="panel" aria-label="Events">
    <header><h2>Events</h2><span class="muted">${events.length}</span></header>
    ${!shown.length && html`<p class="muted">Nothing has happened yet.</p>`}
    <ol class="log" tabindex="0" aria-label="Event log">
      ${shown.map(
        (event) => html`<li key=${event.event_id} class=${event.level}>
          <time datetime=${event.ts} title=${event.ts}>${new Date(event.ts).toLocaleTimeString("en-GB")}</time>
          <div><b>${spaced(event.event)}</b>${facts(event)}</div>
        </li>`,
      )}
    </ol>
  </section>`;
}

function facts({ message, fields, actor }) {
  const words = [
    message,
    !message && Array.isArray(fields?.qualities) && fields.qualities.join(", "), // a sentence names them itself
    fields?.seconds != null && `${fields.seconds.toFixed(1)} s`,
    fields?.code,
    actor && !fields?.worker_id && `by ${actor}`,
  ].filter(Boolean);
  return words.length ? html`<p>${words.join(" · ")}</p>` : null;
}
