// A new worker gets a key, which is shown this once.
import { post } from "../common/api.js";
import { Dialog } from "../common/dialog.js";
import { Icon } from "../common/icons.js";
import { attempt } from "../common/toasts.js";
import { html, useState } from "../common/view.js";

export function Register({ close }) {
  const [name, setName] = useState("");
  const [given, setGiven] = useState(/** @type {any} */ (null));
  async function submit(event) {
    event.preventDefault();
    const made = await attempt(() => post("/api/worker/register", { worker_name: name || null, worker_type: "remote" }));
    if (made) setGiven(made);
  }
  if (given) return html`<${Key} given=${given} close=${close} />`;
  return html`<${Dialog} title="Register a worker" close=${close}>
    <form onSubmit=${submit}>
      <label class="field"><span>Name</span>
        <input value=${name} maxlength="100" placeholder="studio" autofocus onInput=${(event) => setName(event.target.value)} />
        <small>For machines that reach this service by HTTPS only. A worker beside Temporal registers itself.</small>
      </label>
      <footer><button type="button" class="button" onClick=${close}>Back</button><button class="button primary">Register</button></footer>
    </form>
  <//>`;
}

export function Key({ given, close }) {
  const copy = () => attempt(() => navigator.clipboard.writeText(given.api_key), "Copied.");
  return html`<${Dialog} title="Keep this key" close=${close}>
    <p class="muted">It is shown this once: only its hash is kept. The worker sends it as <code>X-Worker-API-Key</code>.</p>
    <p class="secret"><code>${given.api_key}</code>
      <button class="plain-button" aria-label="Copy the key" onClick=${copy}><${Icon} name="copy" /></button></p>
    <dl class="facts"><dt>worker</dt><dd class="mono">${given.worker_id}</dd></dl>
    <footer><button class="button primary" onClick=${close}>I have it</button></footer>
  <//>`;
}
