// A question before something happens: the browser's own dialog, which keeps the focus and closes with Escape.
import { Icon } from "./icons.js";
import { html, useEffect, useRef } from "./view.js";

export function Dialog({ title, close, children }) {
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => /** @type {HTMLElement | null} */ (before)?.focus?.();
  }, []);
  return html`<dialog ref=${box} aria-label=${title} onClose=${close}
    onClick=${(event) => event.target === box.current && close()}>
    <div class="dialog">
      <header>
        <h2>${title}</h2>
        <button class="plain-button" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>
      </header>
      ${children}
    </div>
  </dialog>`;
}

/** Ask once more before what cannot be taken back. */
export function Sure({ title, verb, close, act, children }) {
  return html`<${Dialog} title=${title} close=${close}>
    <p class="muted">${children}</p>
    <footer>
      <button class="button" onClick=${close}>Back</button>
      <button class="button primary danger" onClick=${() => (close(), act())}>${verb}</button>
    </footer>
  <//>`;
}
