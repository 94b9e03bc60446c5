// The row below the picture.
import { Icon } from "../common/icons.js";
import { Menu } from "../common/menu.js";
import { html } from "../common/view.js";
import { clock } from "../common/words.js";
import { Seek } from "./seek.js";

export function Controls({ state, choices, frames, deeds, growing }) {
  const { paused, time, duration, muted, volume } = state;
  return html`<div class="player-controls">
    <${Seek} time=${time} duration=${duration} buffered=${state.buffered} frames=${frames} seek=${deeds.seek} />
    <div class="player-row">
      <${Button} icon=${paused ? "play" : "pause"} label=${paused ? "Play" : "Pause"} act=${deeds.toggle} />
      <${Button} icon=${muted || !volume ? "muted" : "volume"} label=${muted ? "Sound on" : "Sound off"} act=${deeds.mute} />
      <input class="volume" type="range" min="0" max="1" step="0.05" value=${muted ? 0 : volume} aria-label="Volume"
        onInput=${(event) => deeds.volume(Number(event.target.value))} />
      <span class="player-time">${clock(time)} / ${clock(duration)}${growing ? " · growing" : ""}</span>
      ${choices && html`<${Choices} choices=${choices} deeds=${deeds} />`}
      <${Button} icon="full" label="Full screen" act=${deeds.full} />
    </div>
  </div>`;
}

function Choices({ choices, deeds }) {
  const { levels, level, auto, sounds, sound, texts, text } = choices;
  const shown = levels[level]?.name ?? "";
  const qualities = [
    { label: "Automatic", hint: auto ? shown : "", checked: auto, act: () => deeds.level(-1) },
    ...[...levels]
      .sort((one, other) => other.bitrate - one.bitrate)
      .map(({ index, name, bitrate }) => ({
        label: name,
        hint: `${(bitrate / 1e6).toFixed(1)} Mbit/s`,
        checked: !auto && index === level,
        act: () => deeds.level(index),
      })),
  ];
  const captions = [
    { label: "Off", checked: text < 0, act: () => deeds.text(-1) },
    ...texts.map(({ index, name }) => ({ label: name, checked: index === text, act: () => deeds.text(index) })),
  ];
  const tracks = sounds.map(({ index, name }) => ({ label: name, checked: index === sound, act: () => deeds.sound(index) }));
  return html`${texts.length > 0 && html`<${Menu} label="Captions" icon="captions" items=${captions} kind="plain-button" up />`}
    ${sounds.length > 1 && html`<${Menu} label="Sound track" icon="sound" items=${tracks} kind="plain-button" up />`}
    ${levels.length > 0 && html`<${Menu} label="Quality" icon="gear" text=${shown} items=${qualities} kind="plain-button" up />`}`;
}

function Button({ icon, label, act }) {
  return html`<button class="plain-button" aria-label=${label} title=${label} onClick=${act}><${Icon} name=${icon} /></button>`;
}
