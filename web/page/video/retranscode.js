// Make a video anew, in some qualities or in all.
import { post } from "../common/api.js";
import { Dialog } from "../common/dialog.js";
import { attempt } from "../common/toasts.js";
import { html, useState, useStore } from "../common/view.js";
import { about } from "./about.js";

export function Retranscode({ video, close, reload }) {
  const { ladder = video.qualities.map((one) => one.quality) } = useStore(about) ?? {};
  const short = Math.min(video.source_width || Infinity, video.source_height || Infinity);
  const possible = ladder.filter((name) => parseInt(name, 10) <= short);
  const offered = possible.length ? possible : ladder.slice(-1);
  const [chosen, setChosen] = useState(offered);
  const [soon, setSoon] = useState(true);
  const toggle = (name) => setChosen(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  function start() {
    close();
    const body = { qualities: chosen.length === offered.length ? [] : chosen, tier: soon ? null : "bulk" };
    attempt(() => post(`/api/videos/${video.video_id}/retranscode`, body), "It is made anew.").then(reload);
  }
  return html`<${Dialog} title="Make it anew" close=${close}>
    <p class="muted">What it has is served until the new stream is whole and verified.</p>
    <fieldset class="ticks"><legend>Qualities</legend>
      ${offered.map(
        (name) => html`<label key=${name}><input type="checkbox" checked=${chosen.includes(name)} onChange=${() => toggle(name)} />${name}</label>`,
      )}
    </fieldset>
    <label class="check"><input type="checkbox" checked=${!soon} onChange=${() => setSoon(!soon)} /> It can wait for all others</label>
    <footer>
      <button class="button" onClick=${close}>Back</button>
      <button class="button primary" disabled=${!chosen.length} onClick=${start}>Start</button>
    </footer>
  <//>`;
}
