// Words, a state, a tier, an owner: kept in the address, so that they can be shared and gone back from.
import { Icon } from "../common/icons.js";
import { go, href } from "../common/router.js";
import { TIERS } from "../common/tiers.js";
import { html, useEffect, useRef, useState } from "../common/view.js";

const TYPING_MS = 200;
const STATES = [
  ["", "All"],
  ["processing", "Working"],
  ["pending", "Waiting"],
  ["ready", "Ready"],
  ["failed", "Failed"],
  ["deleted", "Deleted"],
];

export function Filters({ query }) {
  const { status = "", owner = "", tier = "", search = "" } = query;
  const [words, setWords] = useState(search);
  const timer = useRef(0);
  useEffect(() => setWords(search), [search]);

  function type(event) {
    const text = event.target.value;
    setWords(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => go("", { ...query, search: text.trim() }, { replace: true }), TYPING_MS);
  }

  return html`<div class="filters">
    <label class="search">
      <${Icon} name="search" size=${16} /><span class="hidden">Search titles</span>
      <input type="search" placeholder="Search titles" value=${words} maxlength="200" onInput=${type} />
      <kbd aria-hidden="true">/</kbd>
    </label>
    <nav class="choices" aria-label="State">
      ${STATES.map(
        ([value, label]) => html`<a href=${href("", { ...query, status: value })}
          aria-current=${status === value ? "true" : undefined}>${label}</a>`,
      )}
    </nav>
    <label class="tier-choice"><span class="hidden">Tier</span>
      <select value=${tier} onChange=${(event) => go("", { ...query, tier: event.target.value })}>
        <option value="">Every tier</option>
        ${TIERS.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
      </select>
    </label>
    ${owner &&
    html`<a class="chip" href=${href("", { ...query, owner: "" })} aria-label="Owner ${owner}: show all owners">
      ${owner}<${Icon} name="close" size=${14} /></a>`}
  </div>`;
}
