// A question before something happens: the browser's own dialog, which keeps the focus and closes with Escape.
import { Icon } from "./icons.js";
import { html, useEffect, useRef } from "./view.js";

/** @param {{title: string, close: () => void, stays?: boolean, children?: any}} props `stays`: a click beside it does not close it */
export function Dialog({ title, close, stays, children }) {
  const box = useRef(/** @type {any} */ (null));
  const pressed = useRef(/** @type {any} */ (null)); // who selects a text and lets go beside it closes nothing
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => /** @type {HTMLElement | null} */ (before)?.focus?.();
  }, []);
  return html`<dialog ref=${box} aria-label=${title} onClose=${close}
    onPointerDown=${(event) => (pressed.current = event.target)}
    onClick=${(event) => !stays && event.target === box.current && pressed.current === box.current && close()}>
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
