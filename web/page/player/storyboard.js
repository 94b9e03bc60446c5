// Small pictures for the time bar, out of a WebVTT file that names parts of larger ones.

const TIME = /(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)/;

/** @returns {{start: number, end: number, url: string, x: number, y: number, w: number, h: number}[]} */
export function parse(text, base) {
  const frames = [];
  for (const block of text.split(/\r?\n\r?\n/)) {
    const lines = block.split(/\r?\n/);
    const at = lines.findIndex((line) => line.includes("-->"));
    if (at < 0 || !lines[at + 1]) continue;
    const [start, end] = lines[at].split("-->").map(seconds);
    const [file, part = ""] = lines[at + 1].split("#xywh=");
    const [x, y, w, h] = part.split(",").map(Number);
    if ([start, end, x, y, w, h].every(Number.isFinite)) frames.push({ start, end, url: new URL(file, base).href, x, y, w, h });
  }
  return frames;
}

function seconds(text) {
  const [, h = 0, m = NaN, s = NaN] = TIME.exec(text) ?? [];
  return Number(h) * 3600 + Number(m) * 60 + Number(s);
}

/** Find the picture of a moment; past the end the last one. */
export function frameAt(frames, time) {
  return frames.find((frame) => time < frame.end) ?? frames.at(-1) ?? null;
}

export async function load(url) {
  try {
    const answer = await fetch(url);
    return answer.ok ? parse(await answer.text(), new URL(url, location.href)) : [];
  } catch {
    return []; // the time bar works without
  }
}
