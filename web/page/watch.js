// The public page of one video: the player and nothing else, made to be put into other pages.
import { useEvery } from "./common/asking.js";
import { html, render, useState } from "./common/view.js";
import { Player } from "./player/player.js";

const LOOK_MS = 10_000;
const root = /** @type {HTMLElement} */ (document.getElementById("page"));

function Watch({ told }) {
  const [video, setVideo] = useState(told);
  const { title, stream, poster, storyboard, duration, growing } = video;
  // Who joins while it is made is not told of the qualities that come later. The page itself says when all are there.
  useEvery(growing ? LOOK_MS : 0, async () => {
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return; // it plays on, and is asked again
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const newest = page.getElementById("page")?.dataset.video;
    if (newest) setVideo(JSON.parse(newest));
  });
  return html`<main class="watch-main">
    <${Player} url=${stream} poster=${poster} storyboard=${storyboard} known=${duration} growing=${growing} fresh=${growing} title=${title} />
    <h1 class="hidden">${title}</h1>
  </main>`;
}

render(html`<${Watch} told=${JSON.parse(root.dataset.video ?? "{}")} />`, root);
