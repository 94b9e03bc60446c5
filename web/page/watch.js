// The public page of one video: the player and nothing else, made to be put into other pages.
import { html, render } from "./common/view.js";
import { Player } from "./player/player.js";

const root = /** @type {HTMLElement} */ (document.getElementById("page"));
const { title, stream, poster, storyboard, duration, growing } = JSON.parse(root.dataset.video ?? "{}");
render(
  html`<main class="watch-main">
    <${Player} url=${stream} poster=${poster} storyboard=${storyboard} known=${duration} growing=${growing} title=${title} />
    <h1 class="hidden">${title}</h1>
  </main>`,
  root,
);
