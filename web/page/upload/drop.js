// Files may be dropped anywhere on the page.
import { Icon } from "../common/icons.js";
import { html, useEffect, useState } from "../common/view.js";
import { takeDetails } from "./details.js";
import { add } from "./transfers.js";

const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

export function Drop() {
  const [over, setOver] = useState(false);
  useEffect(() => {
    let depth = 0; // each element below the pointer tells of its own coming and going
    const on = {
      dragenter(event) {
        if (!hasFiles(event)) return;
        event.preventDefault();
        depth += 1;
        setOver(true);
      },
      dragover(event) {
        if (hasFiles(event)) event.preventDefault();
      },
      dragleave(event) {
        if (!hasFiles(event)) return;
        depth -= 1;
        if (depth <= 0) setOver(false);
      },
      drop(event) {
        if (!hasFiles(event)) return;
        event.preventDefault();
        depth = 0;
        setOver(false);
        const files = [...event.dataTransfer.files];
        if (files.length) add(files, takeDetails());
      },
    };
    for (const [name, handle] of Object.entries(on)) addEventListener(name, handle);
    return () => {
      for (const [name, handle] of Object.entries(on)) removeEventListener(name, handle);
    };
  }, []);
  return over ? html`<div class="drop-veil"><${Icon} name="upload" size=${40} />Drop to upload</div>` : null;
}
