// The player: our own controls around a video element, so that they are the same everywhere and know our storyboard.
import { Icon } from "../common/icons.js";
import { singleKeys } from "../common/single_keys.js";
import { html, useEffect, useRef, useState } from "../common/view.js";
import { Controls } from "./controls.js";
import { play } from "./engine.js";
import { keys } from "./keys.js";
import { load } from "./storyboard.js";

const IDLE_MS = 2600;
const SOON_MS = 4000;
const LATEST_MS = 300_000;
const STILL = { time: 0, duration: 0, buffered: 0, paused: true, volume: 1, muted: false, waiting: false };

/**
 * @param {{url: string, storyboard?: string | null, poster?: string | null, known?: number, fresh?: unknown, title: string, growing?: boolean, autoplay?: boolean}} props
 * `known` is the length that is known while the stream still grows; when `fresh` changes there may be more to choose from.
 */
export function Player({ url, storyboard, poster, known = 0, fresh, title, growing, autoplay }) {
  const box = useRef(/** @type {any} */ (null));
  const video = useRef(/** @type {any} */ (null));
  const engine = useRef(/** @type {any} */ (null));
  const [choices, setChoices] = useState(/** @type {any} */ (null));
  const [state, setState] = useState(STILL);
  const [frames, setFrames] = useState(/** @type {any[]} */ ([]));
  const [problem, setProblem] = useState("");
  const [loaded, setLoaded] = useState({ fresh, turn: 0, start: 0 });
  const idle = useIdle(box, state.paused);

  useEffect(() => {
    let gone = false;
    setProblem(""); // it was that of the one before
    const opening = play(video.current, url, {
      start: loaded.start,
      tell: (told) => gone || setChoices(told),
      fail: (sentence) => gone || setProblem(sentence),
    });
    opening.then(
      (one) => (gone ? one.stop() : (engine.current = one)),
      () => gone || setProblem("The player could not be loaded."),
    );
    return () => {
      gone = true;
      engine.current = null;
      opening.then((one) => one.stop(), () => null);
    };
  }, [url, loaded.turn]);

  useEffect(() => {
    if (!storyboard) return undefined;
    let timer = 0;
    let gone = false;
    // It is made when the video is ready already: who watched it become so gets it a little later.
    async function look(wait) {
      const found = await load(storyboard);
      if (gone) return;
      setFrames(found);
      if (!found.length && wait < LATEST_MS) timer = setTimeout(look, wait, wait * 2);
    }
    look(SOON_MS);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [storyboard]);

  // A stream that was opened while it grew does not hear of qualities that came later: it is opened anew, at once
  // where nobody watches, else when somebody asks for it.
  const renewed = fresh !== loaded.fresh;
  function renew() {
    const { currentTime, paused } = video.current;
    setLoaded({ fresh, turn: loaded.turn + 1, start: currentTime });
    if (!paused) video.current.addEventListener("canplay", () => video.current.play(), { once: true });
  }
  useEffect(() => {
    if (renewed && video.current.paused) renew();
  }, [renewed, state.paused]);

  function look() {
    if (!video.current) return; // its last event came after it had gone
    const { currentTime, duration, paused, volume, muted, readyState, seeking } = video.current;
    const length = Number.isFinite(duration) ? duration : 0;
    const shown = growing ? Math.max(known, length) : length || known;
    setState({ time: currentTime, duration: shown, buffered: bufferedEnd(video.current), paused, volume, muted, waiting: !paused && (seeking || readyState < 3) });
  }
  const deeds = {
    toggle: () => (video.current.paused ? video.current.play().catch(() => null) : video.current.pause()),
    seek(time) {
      const end = Number.isFinite(video.current.duration) ? video.current.duration : known;
      video.current.currentTime = Math.min(Math.max(0, time), end);
      look();
    },
    mute: () => (video.current.muted = !video.current.muted),
    volume: (value) => ((video.current.volume = value), (video.current.muted = value === 0)),
    full: () => (document.fullscreenElement ? document.exitFullscreen() : box.current.requestFullscreen?.()),
    level: (index) => engine.current?.chooseLevel(index),
    sound: (index) => engine.current?.chooseSound(index),
    text: (index) => engine.current?.chooseText(index),
  };
  const { native } = choices ?? {};
  const pressed = useRef(/** @type {any} */ (null));
  pressed.current = (event) => keys(event, deeds, state, choices);
  useEffect(() => {
    // Who is nowhere in particular means the player.
    const anywhere = (event) => singleKeys.get() && event.target.matches?.("body, main") && pressed.current(event);
    document.addEventListener("keydown", anywhere);
    return () => document.removeEventListener("keydown", anywhere);
  }, []);
  return html`<div class="player ${idle ? "is-idle" : ""}" ref=${box} role="region" aria-label="Player: ${title}"
    onKeyDown=${(event) => pressed.current(event)}>
    <video ref=${video} playsinline preload="metadata" tabindex="-1" poster=${poster ?? undefined} autoplay=${autoplay}
      onClick=${native ? undefined : deeds.toggle} onDblClick=${native ? undefined : deeds.full}
      onTimeUpdate=${look} onDurationChange=${look} onProgress=${look} onPlay=${look} onPause=${look}
      onVolumeChange=${look} onWaiting=${look} onPlaying=${look} onSeeked=${look}></video>
    ${problem && html`<div class="player-note" role="alert"><${Icon} name="warn" size=${15} />${problem}</div>`}
    ${renewed && !problem && html`<div class="player-note">More qualities are there <button onClick=${renew}>Use them</button></div>`}
    ${choices && !native && state.paused && state.time === 0 &&
    html`<button class="player-big" aria-label="Play" onClick=${deeds.toggle}><${Icon} name="play" size=${30} /></button>`}
    ${!native && html`<${Controls} state=${state} choices=${choices} frames=${frames} deeds=${deeds} growing=${growing} />`}
  </div>`;
}

function bufferedEnd({ buffered, currentTime }) {
  for (let index = 0; index < buffered.length; index += 1)
    if (buffered.start(index) <= currentTime + 0.2 && currentTime <= buffered.end(index)) return buffered.end(index);
  return currentTime;
}

/** Controls go when nothing moves while it plays; who is among them with the keyboard keeps them. */
function useIdle(box, paused) {
  const [idle, setIdle] = useState(false);
  useEffect(() => {
    let timer = 0;
    const stir = () => {
      setIdle(false);
      clearTimeout(timer);
      if (!paused)
        timer = setTimeout(() => box.current?.querySelector(".player-controls :focus-visible") || setIdle(true), IDLE_MS);
    };
    const names = ["pointermove", "pointerdown", "keydown", "focusin"];
    stir();
    for (const name of names) box.current.addEventListener(name, stir);
    return () => {
      clearTimeout(timer);
      for (const name of names) box.current?.removeEventListener(name, stir);
    };
  }, [paused]);
  return idle;
}
