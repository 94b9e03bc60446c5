// The upload page: choose, say whose it is, watch it go.
import { Icon } from "../common/icons.js";
import { html, useEffect, useRef, useState, useStore } from "../common/view.js";
import { ago, bytes } from "../common/words.js";
import { details, setDetails, takeDetails, TIERS } from "./details.js";
import { Transfer } from "./transfer.js";
import { add, clearDone, givenUp, library, transfers } from "./transfers.js";

const KINDS = "video/*,.mkv,.ts,.m2ts,.mts,.flv,.mxf,.vob,.y4m,.avi,.wmv,.ogv,.3gp,.mpg";

export function Upload() {
  const all = useStore(transfers);
  const input = useRef(/** @type {any} */ (null));
  const chosen = (event) => {
    if (event.target.files.length) add([...event.target.files], takeDetails());
    event.target.value = "";
  };
  return html`<section class="upload" aria-label="Upload">
    <h1>Upload</h1>
    <${Fields} />
    <div class="dropzone">
      <${Icon} name="upload" size=${36} />
      <h2>Drop videos here, or anywhere on the page</h2>
      <p>Several at once are fine. A lost connection or a closed tab goes on where it stopped.</p>
      <button class="button primary" onClick=${() => input.current.click()}>Choose files</button>
      <input ref=${input} type="file" multiple accept=${KINDS} hidden aria-label="Video files" onChange=${chosen} />
    </div>
    ${all.length > 0 &&
    html`<div class="panel">
      <header><h2>Uploads</h2>
        ${all.some((one) => one.state === "done") && html`<button class="button small quiet" onClick=${clearDone}>Clear finished</button>`}</header>
      <ul class="transfers">${all.map((one) => html`<${Transfer} key=${one.id} one=${one} />`)}</ul>
    </div>`}
    <${Unfinished} busy=${all} />
  </section>`;
}

/** They go with the files that are chosen or dropped next, and so come first. */
function Fields() {
  const { title, owner, tier } = useStore(details);
  const set = (name) => (event) => setDetails({ [name]: event.target.value });
  return html`<div class="upload-fields">
    <label class="field"><span>Title</span>
      <input value=${title} maxlength="255" placeholder="The file’s name" onInput=${set("title")} /></label>
    <label class="field"><span>Owner</span>
      <input value=${owner} maxlength="255" placeholder="Nobody" autocomplete="off" onInput=${set("owner")} /></label>
    <label class="field"><span>Tier</span>
      <select value=${tier} onChange=${set("tier")}>${TIERS.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
  </div>`;
}

/** What a tab that was closed has left: whoever chooses the same file again goes on where it stopped. */
function Unfinished({ busy }) {
  const [left, setLeft] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    library().then(
      async (tus) => setLeft(await tus.defaultOptions.urlStorage.findAllUploads()),
      () => null,
    );
  }, [busy.length]);
  const names = new Set(busy.map((one) => one.name));
  const shown = left.filter((one) => !names.has(one.metadata?.filename) && !givenUp.has(one.uploadUrl));
  async function drop(one) {
    const tus = await library();
    await fetch(one.uploadUrl, { method: "DELETE", headers: { "Tus-Resumable": "1.0.0" } }).catch(() => null);
    await tus.defaultOptions.urlStorage.removeUpload(one.urlStorageKey);
    setLeft(left.filter((other) => other !== one));
  }
  if (!shown.length) return null;
  return html`<div class="panel">
    <header><h2>Begun earlier</h2></header>
    <p class="muted">Choose the same file again, and it goes on where it stopped.</p>
    <ul class="transfers">
      ${shown.map(
        (one) => html`<li class="transfer" key=${one.urlStorageKey}><b dir="auto">${one.metadata?.filename}</b>
          <p class="line"><span>${bytes(one.size)}</span><span>${ago(new Date(one.creationTime).toISOString())}</span></p>
          <span class="buttons"><button class="button small quiet" onClick=${() => drop(one)}>Forget</button></span></li>`,
      )}
    </ul>
  </div>`;
}
