// The time bar: what was played, what is there, and a look at where the pointer is.
import { html, useRef, useState } from "../common/view.js";
import { clock } from "../common/words.js";
import { frameAt } from "./storyboard.js";

export function Seek({ time, duration, buffered, frames, seek }) {
  const bar = useRef(/** @type {any} */ (null));
  const [over, setOver] = useState(/** @type {number | null} */ (null));

  function part(event) {
    const box = bar.current.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  }
  function down(event) {
    event.currentTarget.setPointerCapture(event.pointerId);
    seek(part(event) * duration);
  }
  function move(event) {
    setOver(part(event));
    if (event.buttons & 1) seek(part(event) * duration);
  }
  function key(event) {
    const to = { ArrowLeft: time - 5, ArrowRight: time + 5, PageDown: time - 30, PageUp: time + 30, Home: 0, End: duration }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    seek(to);
  }

  const played = duration ? time / duration : 0;
  return html`<div class="seek" ref=${bar} role="slider" tabindex="0" aria-label="Time" aria-valuemin="0"
    aria-valuemax=${Math.round(duration)} aria-valuenow=${Math.round(time)} aria-valuetext="${clock(time)} of ${clock(duration)}"
    onPointerDown=${down} onPointerMove=${move} onPointerLeave=${() => setOver(null)} onKeyDown=${key}>
    <div class="seek-track">
      <i style=${{ transform: `scaleX(${duration ? Math.min(1, buffered / duration) : 0})` }}></i>
      <i class="played" style=${{ transform: `scaleX(${played})` }}></i>
    </div>
    ${over !== null && duration > 0 && html`<${Tip} at=${over} time=${over * duration} frames=${frames} />`}
  </div>`;
}

function Tip({ at, time, frames }) {
  const frame = frameAt(frames, time);
  const half = frame ? frame.w / 2 : 24;
  const style = { left: `clamp(${half}px, ${at * 100}%, calc(100% - ${half}px))` };
  return html`<div class="seek-tip" style=${style}>
    ${frame &&
    html`<div class="frame" style=${{
      width: `${frame.w}px`,
      height: `${frame.h}px`,
      backgroundImage: `url("${frame.url}")`,
      backgroundPosition: `-${frame.x}px -${frame.y}px`,
    }}></div>`}
    <span>${clock(time)}</span>
  </div>`;
}
