// The cards of the library, as many of them as are near.
import { html, useLayoutEffect, useRef, useState } from "../common/view.js";
import { Card } from "./card.js";
import { near } from "./near.js";

const FEW = 150; // so many are shown as they are

export function Cards({ items, query, old }) {
  const list = useRef(/** @type {any} */ (null));
  const { from, to, above, below } = useNear(list, items.length);
  return html`<ul class="cards ${old ? "is-old" : ""}" ref=${list} onKeyDown=${walk}
    style=${{ paddingTop: `${above}px`, paddingBottom: `${below}px` }}>
    ${items
      .slice(from, to)
      .map((video, index) => html`<${Card} key=${video.video_id} video=${video} query=${query} place=${from + index + 1} of=${items.length} />`)}
  </ul>`;
}

/**
 * Follow the window over a grid of cards that are all of one height.
 * What is kept is what was measured, not which cards that meant: there may be fewer of them by now.
 */
function useNear(list, count) {
  const [seen, setSeen] = useState(/** @type {any} */ (null));
  const isLong = count > FEW;
  useLayoutEffect(() => {
    if (!isLong) return undefined;
    let due = 0;
    function look() {
      due = 0;
      const card = list.current?.firstElementChild;
      if (!card) return;
      const { gridTemplateColumns, rowGap } = getComputedStyle(list.current);
      const now = {
        columns: gridTemplateColumns.split(" ").length,
        row: card.getBoundingClientRect().height + parseFloat(rowGap),
        top: -list.current.getBoundingClientRect().top,
        height: innerHeight,
      };
      setSeen((before) => (before && isSame(near({ count, ...before }), near({ count, ...now })) ? before : now));
    }
    const soon = () => (due ||= requestAnimationFrame(look));
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      cancelAnimationFrame(due);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, [count]);
  return isLong && seen ? near({ count, ...seen }) : { from: 0, to: Math.min(count, FEW), above: 0, below: 0 };
}

const isSame = (one, other) => ["from", "to", "above", "below"].every((name) => one[name] === other[name]);

/** Arrows move between the cards, up and down by rows. */
function walk(event) {
  const links = [...event.currentTarget.querySelectorAll("a.card-link")];
  const at = links.indexOf(document.activeElement);
  if (at < 0) return;
  const top = (link) => link.getBoundingClientRect().top;
  const row = Math.max(1, links.filter((link) => Math.abs(top(link) - top(links[0])) < 4).length);
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row }[event.key];
  const to = event.key === "Home" ? 0 : event.key === "End" ? links.length - 1 : step && at + step;
  if (to === undefined || !links[to]) return;
  event.preventDefault();
  links[to].focus();
}
