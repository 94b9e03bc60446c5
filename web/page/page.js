// The page: finds out where one is, and shows it.
import { askSession, session } from "./common/api.js";
import { Keys, listenToKeys } from "./common/keys.js";
import { listen, route } from "./common/router.js";
import { begin, SignIn } from "./common/sign_in.js";
import { Empty } from "./common/states.js";
import { Toasts } from "./common/toasts.js";
import { Top } from "./common/top.js";
import { html, render, useEffect, useRef, useStore } from "./common/view.js";
import { Library } from "./library/library.js";
import { Drop } from "./upload/drop.js";
import { Tray } from "./upload/tray.js";
import { Upload } from "./upload/upload.js";
import { askAbout } from "./video/about.js";
import { Video } from "./video/video.js";
import { Queues } from "./workers/queues.js";
import { Workers } from "./workers/workers.js";

const TITLES = { "": "Library", upload: "Upload", workers: "Workers", queues: "Queues", videos: "Video" };

const RENEW_MS = 3 * 3600 * 1000; // a cookie is renewed when half of its week is over

function place({ path: [name = "", id], query }) {
  if (name === "") return html`<${Library} query=${query} />`;
  if (name === "videos" && /^\d+$/.test(id ?? "")) return html`<${Video} key=${id} id=${Number(id)} />`;
  if (name === "upload") return html`<${Upload} />`;
  if (name === "workers") return html`<${Workers} />`;
  if (name === "queues") return html`<${Queues} />`;
  return html`<${Empty} title="There is nothing here" icon="help"><p><a href="#/">To the library</a></p><//>`;
}

function Page() {
  const here = useStore(route);
  const who = useStore(session);
  const [name = ""] = here.path;
  const main = useRef(/** @type {any} */ (null));
  const moved = useRef(false);
  useEffect(() => {
    document.title = `${TITLES[name] ?? "VLog"} – VLog`;
    if (moved.current) main.current?.focus({ preventScroll: true }); // so that a screen reader goes along
    moved.current = true;
    if (name !== "") scrollTo(0, 0);
  }, [name, here.path[1]]);
  useEffect(() => {
    if (who?.signed_in) askAbout();
  }, [who?.signed_in]);
  useEffect(() => {
    if (!who?.signed_in || !who.secret_required) return undefined;
    const timer = setInterval(askSession, RENEW_MS);
    return () => clearInterval(timer);
  }, [who?.signed_in, who?.secret_required]);
  if (!who) return null;
  if (!who.signed_in) return html`<${SignIn} />`;
  return html`<a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), main.current?.focus())}>To the content</a>
    <${Top} here=${name} />
    <main id="main" ref=${main} tabindex="-1">${place(here)}</main>
    <${Drop} /><${Tray} /><${Toasts} /><${Keys} />`;
}

listen();
listenToKeys();
const root = /** @type {HTMLElement} */ (document.getElementById("page"));
begin(root.dataset.session);
root.textContent = "";
render(html`<${Page} />`, root);
