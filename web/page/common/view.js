// Preact, its hooks and htm, under one roof: every other module takes them from here.
import { h, render } from "../lib/preact.js";
import htm from "../lib/htm.js";

export { render };
export * from "../lib/hooks.js";
export const html = htm.bind(h);
