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
