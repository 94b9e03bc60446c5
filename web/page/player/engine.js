// What turns a stream into a picture: hls.js, or the browser itself where hls.js cannot work (an iPhone).
import { mending } from "./mending.js";

const MOST_TRIES = 5; // of what does not look as if it would pass
const LONGEST_WAIT_MS = 15000;
const GAVE_UP = "The player gave up. Load the page again to try once more.";
const CANNOT = "This browser cannot play the video.";

/** What one may choose from, the same whoever plays. */
const NOTHING = { levels: [], level: -1, auto: true, sounds: [], sound: -1, texts: [], text: -1, native: false };

/**
 * Play an address. `tell` hears of everything that can be chosen, `fail` of what is wrong, and "" when it no longer is.
 * @param {HTMLVideoElement} video
 * @param {string} url
 * @param {{start?: number, tell: (state: any) => void, fail: (sentence: string) => void}} options
 */
export async function play(video, url, { start = 0, tell, fail }) {
  const { default: Hls } = await import("../lib/hls.js");
  return Hls.isSupported() ? withHls(Hls, video, url, start, tell, fail) : natively(video, url, start, tell, fail);
}

function natively(video, url, start, tell, fail) {
  video.src = url;
  video.controls = true;
  video.addEventListener("loadedmetadata", () => (video.currentTime = start), { once: true });
  video.addEventListener("error", () => fail(CANNOT), { once: true });
  tell({ ...NOTHING, native: true });
  return { chooseLevel() {}, chooseSound() {}, chooseText() {}, stop: () => video.removeAttribute("src") };
}

function withHls(Hls, video, url, start, tell, fail) {
  const hls = new Hls({
    startPosition: start, // a stream that grows would otherwise start at its end
    enableWorker: false, // our segments need no rewriting, and a worker would need a blob: script
    renderTextTracksNatively: true,
    capLevelToPlayerSize: true,
  });
  let failures = 0; // since something last arrived
  const mayMend = mending();
  let timer = 0;
  function again() {
    if (!failures) return;
    clearTimeout(timer);
    // Without an address a stream that grows would go on at its end; and a master that never came is asked for anew.
    if (hls.levels.length) hls.startLoad(video.currentTime > 0 ? -1 : start);
    else hls.loadSource(url);
  }
  const look = () =>
    tell({
      levels: hls.levels.map((level, index) => ({ index, name: nameOf(level), bitrate: level.bitrate })),
      level: hls.currentLevel,
      auto: hls.autoLevelEnabled,
      sounds: hls.audioTracks.map((track, index) => ({ index, name: track.name || track.lang || `${index + 1}` })),
      sound: hls.audioTrack,
      texts: hls.subtitleTracks.map((track, index) => ({ index, name: track.name || track.lang || `${index + 1}` })),
      text: hls.subtitleDisplay ? hls.subtitleTrack : -1,
      native: false,
    });
  const { Events, ErrorDetails, ErrorTypes } = Hls;
  for (const name of [
    Events.MANIFEST_PARSED,
    Events.LEVEL_SWITCHED,
    Events.LEVELS_UPDATED,
    Events.AUDIO_TRACKS_UPDATED,
    Events.AUDIO_TRACK_SWITCHED,
    Events.SUBTITLE_TRACKS_UPDATED,
    Events.SUBTITLE_TRACK_SWITCH,
  ])
    hls.on(name, look);
  hls.on(Events.ERROR, (_, problem) => {
    if (!problem.fatal) return;
    if (problem.type === ErrorTypes.MEDIA_ERROR) {
      if (problem.details === ErrorDetails.MANIFEST_INCOMPATIBLE_CODECS_ERROR) fail(CANNOT);
      else if (mayMend(video.currentTime)) hls.recoverMediaError();
      else {
        failures = 0; // what still arrives mends nothing
        hls.stopLoad();
        fail(GAVE_UP);
      }
      return;
    }
    failures += 1;
    const status = problem.response?.code ?? 0;
    const passes = problem.type === ErrorTypes.NETWORK_ERROR && (status < 400 || status >= 500);
    if (failures > MOST_TRIES && !passes) fail(GAVE_UP);
    else if (problem.type === ErrorTypes.NETWORK_ERROR) {
      if (passes) fail("The connection was lost. It goes on by itself.");
      timer = setTimeout(again, Math.min(LONGEST_WAIT_MS, 1000 * 2 ** (failures - 1)));
    } else fail(CANNOT);
  });
  hls.on(Events.FRAG_BUFFERED, () => {
    if (!failures) return;
    failures = 0;
    fail("");
  });
  addEventListener("online", again);
  hls.loadSource(url);
  hls.attachMedia(video);
  return {
    // The next segment is of the new quality; `currentLevel` would throw away what is on the screen.
    chooseLevel: (index) => ((hls.nextLevel = index), look()),
    chooseSound: (index) => (hls.audioTrack = index),
    chooseText(index) {
      hls.subtitleDisplay = index >= 0;
      hls.subtitleTrack = index;
      look();
    },
    stop() {
      clearTimeout(timer);
      removeEventListener("online", again);
      hls.destroy();
    },
  };
}

/** A rung is named by its short side, and by its codec when that is not the usual one. */
export function nameOf({ width, height, videoCodec = "" }) {
  const codec = /^(hvc1|hev1)/.test(videoCodec) ? " HEVC" : /^av01/.test(videoCodec) ? " AV1" : "";
  return `${Math.min(width || height, height)}p${codec}`;
}
