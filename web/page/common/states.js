// What is shown when there is nothing to show: empty, broken, not there yet.
import { Icon } from "./icons.js";
import { html } from "./view.js";

export function Empty({ icon = "film", title, children }) {
  return html`<div class="state">
    <${Icon} name=${icon} size=${36} />
    <h2>${title}</h2>
    ${children}
  </div>`;
}

/** An error as a person reads it; one that passes is tried again by itself. */
export function Broken({ error, again }) {
  const away = error.status === 0;
  return html`<div class="state" role="alert">
    <${Icon} name=${away ? "offline" : "warn"} size=${36} />
    <h2>${away ? "No connection" : "That did not work"}</h2>
    <p>${error.message}</p>
    ${again && html`<button class="button" onClick=${again}>Try again</button>`}
    ${!away && error.code && html`<p class="code">${error.code}</p>`}
  </div>`;
}

const KINDS = {
  ready: "good",
  completed: "good",
  idle: "good",
  processing: "busy",
  claimed: "busy",
  in_progress: "busy",
  running: "busy",
  busy: "busy",
  failed: "bad",
  lost: "bad",
  quarantined: "bad",
  revoked: "bad",
  retrying: "warn",
  expired: "warn",
  partial: "warn",
  paused: "warn",
};

/** A state as a word with a dot; the word says it all, the colour only helps. */
export function State({ of, word = of }) {
  return html`<span class="badge ${KINDS[of] ?? "calm"}"><i class="dot"></i>${String(word).replace(/_/g, " ")}</span>`;
}

export function Bar({ percent, label, kind = "busy" }) {
  const shown = Math.min(100, Math.max(0, percent || 0));
  return html`<div class="bar ${kind}" role="progressbar" aria-label=${label} aria-valuemin="0" aria-valuemax="100"
    aria-valuenow=${Math.floor(shown)}><i style=${{ transform: `scaleX(${shown / 100})` }}></i></div>`;
}
