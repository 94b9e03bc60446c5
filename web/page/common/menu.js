// A button with a list below it. Arrows move, Escape closes, a click elsewhere too.
import { Icon } from "./icons.js";
import { html, useEffect, useRef, useState } from "./view.js";

/** @param {{label: string, icon?: string, items: {label: string, hint?: string, checked?: boolean, danger?: boolean, href?: string, act?: () => void}[], kind?: string, text?: string, up?: boolean}} props */
export function Menu({ label, icon, items, kind = "button", text, up }) {
  const [open, setOpen] = useState(false);
  const box = useRef(/** @type {any} */ (null));
  useEffect(() => {
    if (!open) return undefined;
    place(box.current.querySelector("[popover]"), box.current.getBoundingClientRect(), up);
    box.current.querySelector("[role^=menuitem]")?.focus();
    const elsewhere = (event) => box.current?.contains(event.target) || setOpen(false);
    const away = () => setOpen(false);
    document.addEventListener("pointerdown", elsewhere);
    addEventListener("scroll", away, { passive: true });
    addEventListener("resize", away);
    return () => {
      document.removeEventListener("pointerdown", elsewhere);
      removeEventListener("scroll", away);
      removeEventListener("resize", away);
    };
  }, [open]);

  function leave() {
    setOpen(false);
    box.current?.querySelector("button")?.focus();
  }

  function key(event) {
    if (!open) return;
    const all = [...box.current.querySelectorAll("[role^=menuitem]")];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape") leave();
    else if (event.key === "Tab") return setOpen(false);
    else if (to === undefined) return;
    else all[to % all.length].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  const role = items.some((item) => item.checked !== undefined) ? "menuitemradio" : "menuitem";
  return html`<div class="menu" ref=${box} onKeyDown=${key}>
    <button class=${kind} aria-haspopup="menu" aria-expanded=${open} aria-label=${text ? `${label}: ${text}` : label} title=${label}
      onClick=${() => setOpen(!open)}>
      ${icon && html`<${Icon} name=${icon} />`}${text && html`<span>${text}</span>`}
    </button>
    ${open &&
    html`<div class="menu-list" role="menu" aria-label=${label} popover="manual">
      ${items.map((item) =>
        item.href
          ? html`<a key=${item.label} role=${role} tabindex="-1" href=${item.href} target="_blank" rel="noopener" onClick=${leave}>
              <span>${item.label}</span><small><${Icon} name="out" size=${14} /></small></a>`
          : html`<button key=${item.label} role=${role} tabindex="-1" class=${item.danger ? "danger" : ""}
              aria-checked=${role === "menuitemradio" ? !!item.checked : undefined}
              onClick=${() => (leave(), item.act?.())}>
              ${role === "menuitemradio" && html`<span class="tick">${item.checked && html`<${Icon} name="check" size=${15} />`}</span>`}
              <span>${item.label}</span>${item.hint && html`<small>${item.hint}</small>`}
            </button>`,
      )}
    </div>`}
  </div>`;
}

/** Show a list above everything, so that nothing cuts it off, next to its button and inside the window. */
function place(list, button, up) {
  list.showPopover();
  const { width, height } = list.getBoundingClientRect();
  const left = Math.min(Math.max(8, button.right - width), innerWidth - width - 8);
  const below = button.bottom + 6;
  const top = up || below + height > innerHeight ? Math.max(8, button.top - height - 6) : below;
  Object.assign(list.style, { left: `${left}px`, top: `${top}px` });
}
