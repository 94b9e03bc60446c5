import assert from "node:assert/strict";
import { test } from "node:test";

import { encoders, ffmpegs, gpu, pools } from "../page/workers/capabilities.js";

test("what our own workers tell is read", () => {
  const can = { pools: ["gpu", "io"], encoders: { h264: "h264_nvenc" }, ffmpeg: [{ version: "8.1", build: "8.1-a" }], gpu: { vendor: "NVIDIA", device: "0" } };
  assert.deepEqual([pools(can), encoders(can), ffmpegs(can), gpu(can)], [["gpu", "io"], ["h264_nvenc"], ["8.1"], "NVIDIA, 0"]);
  assert.equal(gpu({ gpu: { vendor: "Intel", device: "the first" } }), "Intel");
  assert.equal(gpu({}), null);
});

test("whatever a worker says, the page can show it", () => {
  for (const odd of [null, 7, "cpu", [], [null, { a: 1 }, [2]], { x: { y: 1 } }, true, [[]]]) {
    const can = { pools: odd, encoders: odd, ffmpeg: odd, gpu: odd };
    for (const read of [pools, encoders, ffmpegs]) assert.ok(read(can).every((one) => typeof one === "string"), JSON.stringify(odd));
    assert.ok(gpu(can) === null || typeof gpu(can) === "string");
  }
});
