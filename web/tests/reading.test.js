import assert from "node:assert/strict";
import { test } from "node:test";

import { behind, canReadOn, isOld, NOTHING, patience, reading } from "../page/library/reading.js";

const PAGE = 3;
const turn = () => new Promise((resolve) => setImmediate(resolve));
const video = (id) => ({ video_id: id, status: id % 2 ? "ready" : "processing" });
const ids = (known) => known.items.map((one) => one.video_id);
const fitting = (videos, { status }) => videos.filter((one) => !status || one.status === status).sort((a, b) => b.video_id - a.video_id);

/** A list whose answers come when they are told to: of a library that may have changed by then. */
function desk(videos) {
  const asked = [];
  let value = NOTHING;
  const kept = { get: () => value, set: (next) => (value = next) };
  const list = reading((filters, cursor, signal) => new Promise((resolve, reject) => asked.push({ filters, cursor, signal, resolve, reject })), kept);
  const desk = { ...list, asked, videos, known: () => value };
  desk.answer = async (at = 0) => {
    const [{ filters, cursor, resolve }] = asked.splice(at, 1);
    const rest = fitting(desk.videos, filters).filter((one) => !cursor || one.video_id < Number(cursor));
    const items = rest.slice(0, PAGE);
    resolve({ items, next_cursor: rest.length > PAGE ? String(items.at(-1).video_id) : null });
    await turn();
  };
  desk.fail = async (at = 0) => {
    asked.splice(at, 1)[0].reject(new Error("away"));
    await turn();
  };
  return desk;
}

async function opened(count) {
  const here = desk(Array.from({ length: count }, (_, index) => video(index + 1)));
  void here.show({});
  await here.answer();
  return here;
}

test("what is read anew keeps what lies behind, also when its last one was not known", () => {
  const known = [9, 8, 6, 5, 4, 2].map(video);
  const from = (...first) => behind(known, first.map(video)).map((one) => one.video_id);
  assert.deepEqual(from(10, 9, 8), [6, 5, 4, 2]);
  assert.deepEqual(from(9, 8, 7), [6, 5, 4, 2]); // 7 is new here
  assert.deepEqual(from(8, 6, 5), [4, 2]); // 9 is gone
  assert.deepEqual(from(13, 12, 11), []); // 10 may be there, and nobody has read it
  assert.deepEqual(from(), []);
  assert.deepEqual(behind([], [video(3)]), []);
});

test("the end is read on from for as long as there is more", async () => {
  const here = await opened(11);
  for (let round = 1; canReadOn(here.known()); round += 1) {
    void here.more();
    assert.equal(canReadOn(here.known()), false);
    void here.more(); // seen twice, asked once
    assert.equal(here.asked.length, 1);
    await here.answer();
    assert.equal(here.known().rounds, round);
  }
  assert.deepEqual(ids(here.known()), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
});

test("a page that does not come is asked for again, more and more slowly", async () => {
  const here = await opened(5);
  for (const failures of [1, 2, 3]) {
    void here.more();
    await here.fail();
    const { rounds, error, items } = here.known();
    assert.deepEqual([here.known().failures, rounds, error.message, items.length], [failures, failures, "away", PAGE]);
    assert.ok(canReadOn(here.known()), "whoever watches the end is told to look again");
  }
  assert.deepEqual([1, 2, 3, 5, 50].map(patience), [1000, 2000, 4000, 15000, 15000]);
  void here.more();
  await here.answer();
  assert.deepEqual([here.known().failures, here.known().error, ids(here.known())], [0, null, [5, 4, 3, 2, 1]]);
});

test("another choice ends what was asked for the one before, and its end can be read on from", async () => {
  const here = await opened(20);
  void here.more();
  const [before] = here.asked;
  void here.show({ status: "ready" });
  assert.ok(before.signal.aborted && isOld(here.known()) && !canReadOn(here.known()));
  await here.answer(1);
  assert.deepEqual(ids(here.known()), [19, 17, 15]);
  assert.ok(canReadOn(here.known()));
  await here.answer(0); // too late
  assert.deepEqual([ids(here.known()), here.known().readingOn], [[19, 17, 15], false]);
});

test("another choice is asked for at once, also while the one before is being read anew", async () => {
  const here = await opened(8);
  void here.refresh();
  void here.show({ status: "ready" });
  assert.deepEqual(here.asked.map(({ filters }) => filters.status), [undefined, "ready"]);
  await here.answer(0); // too late
  assert.ok(isOld(here.known()));
  await here.answer(0);
  assert.deepEqual(ids(here.known()), [7, 5, 3]);
});

test("a search that fails leaves nothing of what was shown in what is found later", async () => {
  const here = await opened(8);
  void here.show({ status: "ready" });
  await here.fail();
  assert.ok(isOld(here.known()) && here.known().error && !canReadOn(here.known()));
  void here.refresh();
  await here.answer();
  assert.deepEqual([ids(here.known()), here.known().error], [[7, 5, 3], null]);
});

test("a first page that fails while the end is read on from stops neither", async () => {
  const here = await opened(8);
  void here.refresh();
  void here.more();
  await here.fail(0);
  assert.equal(canReadOn(here.known()), false, "it is being read");
  await here.answer(0);
  assert.deepEqual(ids(here.known()), [8, 7, 6, 5, 4, 3]);
});

test("who asks for the first page while it is read waits for that one", async () => {
  const here = await opened(4);
  const both = [here.refresh(), here.refresh()];
  assert.equal(here.asked.length, 1);
  await here.answer();
  await Promise.all(both);
  void here.refresh();
  assert.equal(here.asked.length, 1);
});

test("whatever happens in which order, in the end all are there, each once, in order", async () => {
  for (let seed = 1; seed <= 400; seed += 1) {
    let state = seed;
    const pick = (below) => (state = (state * 48271) % 2147483647) % below;
    const here = await opened(4 + pick(12));
    let newest = here.videos.length;
    for (let step = 0; step < 25; step += 1) {
      const deed = pick(8);
      if (deed === 0) void here.show({ status: ["", "ready", "processing"][pick(3)] });
      else if (deed === 1) void here.refresh();
      else if (deed === 2) here.videos = [...here.videos, ...Array.from({ length: 1 + pick(5) }, () => video((newest += 1)))];
      else if (deed === 3 && here.videos.length) {
        const [gone] = here.videos.splice(pick(here.videos.length), 1);
        here.forget(gone.video_id);
      } else if (deed === 4 && here.asked.length) await here.fail(pick(here.asked.length));
      else if (deed === 5 && here.asked.length) await here.answer(pick(here.asked.length));
      else void here.more();
      await turn();
      const listed = ids(here.known());
      assert.deepEqual(listed, [...new Set(listed)].sort((a, b) => b - a), `seed ${seed}, step ${step}`);
    }
    while (here.asked.length) await here.answer();
    void here.refresh();
    await here.answer();
    for (let round = 0; canReadOn(here.known()); round += 1) {
      assert.ok(round < 50, `seed ${seed} reads on without end`);
      void here.more();
      await here.answer();
    }
    assert.deepEqual(ids(here.known()), fitting(here.videos, here.known().filters).map((one) => one.video_id), `seed ${seed}`);
  }
});
