// A new worker gets a key, which is shown this once.
import { post } from "../common/api.js";
import { copy } from "../common/copying.js";
import { Dialog } from "../common/dialog.js";
import { Icon } from "../common/icons.js";
import { html, useState } from "../common/view.js";

const OWN_SECRET = "Registering has a secret of its own here: use “vlog workers register”, with VLOG_WORKER_ADMIN_SECRET set.";

export function Register({ close }) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState("");
  const [given, setGiven] = useState(/** @type {any} */ (null));
  async function submit(event) {
    event.preventDefault();
    setProblem("");
    try {
      setGiven(await post("/api/worker/register", { worker_name: name || null, worker_type: "remote" }));
    } catch (error) {
      setProblem(error.code === "ADMIN_SECRET_REQUIRED" ? OWN_SECRET : error.message); // who is signed out sees the door
    }
  }
  if (given) return html`<${Key} given=${given} close=${close} />`;
  return html`<${Dialog} title="Register a worker" close=${close}>
    <form onSubmit=${submit}>
      <label class="field"><span>Name</span>
        <input value=${name} maxlength="100" placeholder="studio" autofocus onInput=${(event) => setName(event.target.value)} />
        <small>For machines that reach this service by HTTPS only. A worker beside Temporal registers itself.</small>
      </label>
      ${problem && html`<p class="error" role="alert">${problem}</p>`}
      <footer><button type="button" class="button" onClick=${close}>Back</button><button class="button primary">Register</button></footer>
    </form>
  <//>`;
}

export function Key({ given, close }) {
  const [told, setTold] = useState("");
  const keep = async () => setTold(await copy(given.api_key));
  return html`<${Dialog} title="Keep this key" close=${close} stays>
    <p class="muted">It is shown this once: only its hash is kept.</p>
    <p class="secret"><code>${given.api_key}</code>
      <button class="plain-button" aria-label="Copy the key" onClick=${keep}><${Icon} name="copy" /></button></p>
    <p class="muted">On its machine: <code>VLOG_WORKER_API_KEY=… vlog worker --api ${location.origin}</code></p>
    <dl class="facts"><dt>worker</dt><dd class="mono">${given.worker_id}</dd></dl>
    <footer><span class="muted" role="status">${told}</span><button class="button primary" onClick=${close}>I have it</button></footer>
  <//>`;
}
