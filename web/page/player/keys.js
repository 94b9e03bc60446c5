// Keys while the player has the focus.

export function keys(event, deeds, { time, duration, volume }, choices) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const { key, target } = event;
  const onButton = target.closest("button, input");
  if (onButton && (key === " " || key === "Enter" || key.startsWith("Arrow"))) return; // theirs
  const tenth = /^\d$/.test(key) ? () => deeds.seek((Number(key) / 10) * duration) : undefined;
  const deed = {
    " ": deeds.toggle,
    k: deeds.toggle,
    j: () => deeds.seek(time - 10),
    l: () => deeds.seek(time + 10),
    ArrowLeft: () => deeds.seek(time - 5),
    ArrowRight: () => deeds.seek(time + 5),
    ArrowUp: () => deeds.volume(Math.min(1, volume + 0.1)),
    ArrowDown: () => deeds.volume(Math.max(0, volume - 0.1)),
    m: deeds.mute,
    f: deeds.full,
    c: () => choices?.texts.length && deeds.text(choices.text < 0 ? 0 : -1),
  }[key] ?? tenth;
  if (!deed) return;
  event.preventDefault();
  event.stopPropagation();
  deed();
}
