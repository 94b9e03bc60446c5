// Uploads a file with tus-js-client, as a page would: aborts half-way, and goes on in a new Upload with the address alone.
// node tus_upload.mjs ENDPOINT FILE; prints {url, aborted_at, resumed_at, video_id}.
import fs from "node:fs";
import { createRequire } from "node:module";

const tus = createRequire(new URL("../../web/package.json", import.meta.url))("tus-js-client");
const [endpoint, path] = process.argv.slice(2);
const size = fs.statSync(path).size;
const told = { resumed_at: 0 };

function options(rest) {
  return {
    endpoint,
    metadata: { filename: "node.mp4", title: "Aus Node ü", qualities: "360p" },
    retryDelays: [100, 200, 400, 800, 1600],
    onError: (error) => { console.error(error); process.exit(1); },
    ...rest,
  };
}

const first = new tus.Upload(fs.createReadStream(path), options({
  onProgress: (sent) => {
    if (sent < size / 2 || told.aborted_at) return;
    told.aborted_at = sent;
    first.abort().then(goOn);
  },
}));
first.start();

function goOn() {
  told.url = first.url;
  new tus.Upload(fs.createReadStream(path), options({
    uploadUrl: first.url,
    onAfterResponse: (request, response) => {
      if (request.getMethod() === "HEAD") told.resumed_at = Number(response.getHeader("Upload-Offset"));
    },
    onSuccess: ({ lastResponse }) => {
      told.video_id = Number(lastResponse.getHeader("Vlog-Video-Id"));
      console.log(JSON.stringify(told));
      process.exit(0);
    },
  })).start();
}
