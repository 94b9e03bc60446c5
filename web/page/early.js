// A classic script, so that it runs before the first paint: a page that flashes white at night is no friend, nor is one
// that shows a library on the way to a video.
document.documentElement.dataset.place = /^#?\/?([a-z]*)/.exec(location.hash)?.[1] || "library";
try {
  const chosen = localStorage.getItem("vlog.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; the system's choice holds.
}
