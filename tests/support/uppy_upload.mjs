// Uploads a file with Uppy, as its pages do: in pieces, paused half-way and resumed.
// node uppy_upload.mjs ENDPOINT FILE; prints {name, paused_at, resumed_at, url}.
import fs from "node:fs";
import { createRequire } from "node:module";

const { resolve } = createRequire(new URL("../../web/package.json", import.meta.url));
const { default: Uppy } = await import(resolve("@uppy/core"));
const { default: Tus } = await import(resolve("@uppy/tus"));
const [endpoint, path] = process.argv.slice(2);
const bytes = fs.readFileSync(path);
const told = { paused_at: 0, resumed_at: 0 };

function fail(error) {
  console.error(error);
  process.exit(1);
}

const uppy = new Uppy().use(Tus, {
  endpoint,
  chunkSize: 1 << 20,
  retryDelays: [100, 200, 400, 800, 1600],
  onAfterResponse: (request, response) => {
    if (request.getMethod() === "HEAD") told.resumed_at = Number(response.getHeader("Upload-Offset"));
  },
});
uppy.on("upload-progress", (_, { bytesUploaded }) => {
  if (told.paused_at || bytesUploaded < bytes.length / 2) return;
  told.paused_at = bytesUploaded;
  uppy.pauseAll();
  setTimeout(() => uppy.resumeAll(), 50);
});
// Node's tus-js-client takes a Buffer where a browser's takes a File; Uppy asks either for its size.
const data = Object.assign(bytes, { size: bytes.length });
uppy.addFile({ name: "from Uppy.mov", type: "video/quicktime", data, meta: { title: "Aus Uppy ü" } });
const { successful, failed } = await uppy.upload();
if (failed.length) fail(failed[0].error);
console.log(JSON.stringify({ ...told, name: successful[0].name, url: successful[0].uploadURL }));
process.exit(0);
