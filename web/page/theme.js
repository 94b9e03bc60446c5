// A classic script, so that it runs before the first paint: a page that flashes white at night is no friend.
try {
  const chosen = localStorage.getItem("vlog.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; the system's choice holds.
}
