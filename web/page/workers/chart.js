// A small curve of what was seen lately, the newest at the right.
import { html } from "../common/view.js";

const HIGH = 60;

export function Chart({ values, room, label }) {
  const most = Math.max(1, ...values);
  const points = values.map((value, index) => [room - values.length + index + 1, HIGH - (value / most) * (HIGH - 6)]);
  const line = points.map(([x, y], index) => `${index ? "L" : "M"}${x} ${y.toFixed(1)}`).join("");
  const [from] = points[0] ?? [0];
  return html`<svg class="chart" viewBox="0 0 ${room} ${HIGH + 2}" preserveAspectRatio="none" role="img"
    aria-label="${label}: ${values.at(-1) ?? 0} now, at most ${Math.max(0, ...values)}">
    <line class="base" x1="0" x2=${room} y1=${HIGH} y2=${HIGH} />
    ${points.length > 1 && html`<path class="area" d="${line}L${room} ${HIGH}L${from} ${HIGH}Z" /><path class="curve" d=${line} />`}
  </svg>`;
}
