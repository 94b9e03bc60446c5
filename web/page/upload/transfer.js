// One file on its way, as a line with a bar.
import { Icon } from "../common/icons.js";
import { Bar } from "../common/states.js";
import { html } from "../common/view.js";
import { bytes, percent, span } from "../common/words.js";
import { cancel, pause, resume } from "./transfers.js";

const KIND = { done: "good", failed: "bad", lost: "warn", paused: "calm", waiting: "calm" };

export function Transfer({ one }) {
  const { id, name, size, sent, state } = one;
  const going = state === "running" || state === "lost" || state === "waiting";
  return html`<li class="transfer" data-state=${state}>
    <b dir="auto" title=${name}>${name}</b>
    <${Bar} percent=${size ? (100 * sent) / size : 0} kind=${KIND[state] ?? "busy"} label="Upload of ${name}" />
    <p class="line">${words(one)}</p>
    <span class="buttons">
      ${going && html`<${Button} icon="pause" label="Pause ${name}" act=${() => pause(id)} />`}
      ${(state === "paused" || state === "failed") && html`<${Button} icon="play" label="Go on with ${name}" act=${() => resume(id)} />`}
      ${state === "done"
        ? one.video && html`<a class="button small" href="#/videos/${one.video}">Watch</a>`
        : html`<${Button} icon="close" label="Cancel ${name}" act=${() => cancel(id)} />`}
    </span>
  </li>`;
}

function words({ state, sent, size, rate, sentence }) {
  const far = `${bytes(sent)} of ${bytes(size)}`;
  if (state === "done") return html`<span class="good-text">uploaded</span><span>${bytes(size)}</span>`;
  if (state === "failed") return html`<span class="bad-text">${sentence}</span>`;
  if (state === "waiting") return html`<span>waits for its turn</span><span>${bytes(size)}</span>`;
  if (state === "paused") return html`<span>paused</span><span>${far}</span>`;
  if (state === "lost") return html`<span>${sentence} It goes on by itself.</span><span>${far}</span>`;
  return html`<span>${percent(size ? (100 * sent) / size : 0)}</span><span>${far}</span>
    ${rate > 0 && html`<span>${bytes(rate)}/s</span><span>${span((size - sent) / rate)} left</span>`}`;
}

function Button({ icon, label, act }) {
  return html`<button class="plain-button" aria-label=${label} title=${label} onClick=${act}><${Icon} name=${icon} size=${16} /></button>`;
}
