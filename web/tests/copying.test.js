import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { copy } from "../page/common/copying.js";

const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
const browser = (clipboard) => Object.defineProperty(globalThis, "navigator", { value: { clipboard }, configurable: true });
afterEach(() => void (before ? Object.defineProperty(globalThis, "navigator", before) : delete (/** @type {any} */ (globalThis).navigator)));

test("what is copied is said to be", async () => {
  let kept = "";
  browser({ writeText: async (text) => void (kept = text) });
  assert.equal(await copy("key"), "Copied.");
  assert.equal(kept, "key");
});

test("over plain HTTP there is no clipboard, and who is refused one has none: both are told what to do", async () => {
  browser(undefined);
  assert.match(await copy("key"), /by hand/);
  assert.equal(await copy("key", "Here: key"), "Here: key");
  browser({ writeText: () => Promise.reject(new DOMException("", "NotAllowedError")) });
  assert.match(await copy("key"), /by hand/);
});
