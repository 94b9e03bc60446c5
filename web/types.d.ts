// Under /assets the packages have names of their own; their types are where npm put them.
declare module "*/lib/preact.js" {
  export * from "preact";
}
declare module "*/lib/hooks.js" {
  export * from "preact/hooks";
}
declare module "*/lib/htm.js" {
  import htm from "htm";
  export default htm;
}
declare module "*/lib/hls.js" {
  import Hls from "hls.js";
  export default Hls;
}
declare module "*/lib/tus.js" {}
