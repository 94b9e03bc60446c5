// The door: the admin secret once, then a cookie that no script can read.
import { askSession, learn, post, remove, session } from "./api.js";
import { attempt } from "./toasts.js";
import { html, useState } from "./view.js";

/** The page itself says who looks at it; asking again finds out when the page is an old copy. */
export function begin(told) {
  if (told) session.set(JSON.parse(told));
  askSession();
}

/** Only the service can take the cookie back: whoever cannot reach it is still signed in, and is told so. */
export function signOut() {
  return attempt(async () => learn(await remove("/api/session")));
}

export function SignIn() {
  const [secret, setSecret] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  async function submit(event) {
    event.preventDefault();
    setBusy(true);
    try {
      learn(await post("/api/session", { secret }));
    } catch (problem) {
      setError(problem.message);
      setBusy(false);
    }
  }
  return html`<main class="door">
    <form class="panel" onSubmit=${submit}>
      <h1>VLog</h1>
      <p class="muted">This service asks for its admin secret.</p>
      <input type="text" name="username" autocomplete="username" value="admin" hidden />
      <label class="field"><span>Admin secret</span>
        <input type="password" autocomplete="current-password" required autofocus value=${secret}
          aria-invalid=${!!error} aria-describedby="door-error" onInput=${(event) => setSecret(event.target.value)} />
      </label>
      <p id="door-error" class="error" role="alert">${error}</p>
      <button class="button primary" disabled=${busy || !secret}>Sign in</button>
    </form>
  </main>`;
}
