// SPDX-License-Identifier: Apache-2.0
// Sources: files, bytes and batches of JavaScript; functions of map().
"use strict";
const assert = require("node:assert/strict");
const { AsyncLocalStorage } = require("node:async_hooks");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { Readable } = require("node:stream");
const { test } = require("node:test");
const { pathToFileURL } = require("node:url");
const { collect, numbers, range, uvarrow, values } =
  require("./support/kit.js");

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "uvarrow-"));
test.after(() => fs.rmSync(folder, { recursive: true }));

async function bytesOf(stream) {
  const chunks = [];
  for await (const chunk of stream.toIPC()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function writeFile(name, how) {
  const at = path.join(folder, name);
  await numbers(how).pipeTo(fs.createWriteStream(at));
  return at;
}

test("file() reads a path or a URL", async () => {
  const at = await writeFile("a.arrows", { batches: 5, rows: 1000 });
  assert.deepEqual(await collect(uvarrow.file(at)), range(0, 5000));
  assert.deepEqual(await collect(uvarrow.file(pathToFileURL(at))),
    range(0, 5000));
  await assert.rejects(uvarrow.file(path.join(folder, "none")).next(),
    { code: "ENOENT", errno: -2 });
});

test("a mapped file can be written to, in a copy", async () => {
  const at = await writeFile("mapped.arrows", { batches: 1, rows: 1e5 });
  const [batch] = await uvarrow.file(at, { mmap: true }).readAll();
  batch.data.children[0].buffers[1].fill(1); // would end the process
  assert.deepEqual((await collect(uvarrow.file(at))).slice(-1), [99999]);
  const mapped = uvarrow.file(at, { mmap: true });
  for await (const chunk of mapped.toIPC()) chunk.fill(1);
});

test("fromIPC() reads bytes in any pieces", async () => {
  const bytes = await bytesOf(numbers({ batches: 20, rows: 100 }));
  for (const size of [1, 7, 4096, bytes.length]) {
    const pieces = function* () {
      for (let at = 0; at < bytes.length; at += size) {
        yield bytes.subarray(at, at + size);
      }
    };
    assert.deepEqual(await collect(uvarrow.fromIPC(pieces())), range(0, 2000));
  }
  assert.deepEqual(await collect(uvarrow.fromIPC(bytes)), range(0, 2000));
  assert.deepEqual(await collect(uvarrow.fromIPC(Readable.from([bytes]))),
    range(0, 2000));
  assert.deepEqual(await collect(uvarrow.fromIPC(new Blob([bytes]).stream())),
    range(0, 2000));
});

test("fromIPC() waits while its window is full", async () => {
  const bytes = await bytesOf(numbers({ batches: 100, rows: 10000 }));
  let read = 0;
  const pieces = async function* () {
    for (let at = 0; at < bytes.length; at += 65536) {
      read++;
      yield bytes.subarray(at, at + 65536);
    }
  };
  const stream = uvarrow.fromIPC(pieces(), { window: 1, maxBytes: 1 });
  await stream.next();
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  assert(read < 40, `${read} of ${bytes.length / 65536} pieces were read`);
  assert.equal((await collect(stream)).length, 990000);
});

test("a source that fails is the error of the stream", async () => {
  const reason = new Error("the disk is gone");
  const failing = async function* () {
    yield new Uint8Array(3);
    throw reason;
  };
  await assert.rejects(uvarrow.fromIPC(failing()).next(),
    (error) => error === reason);
  await assert.rejects(uvarrow.fromBatches(failing()).next(),
    /an item of source must be a Batch/);
  await assert.rejects(uvarrow.fromIPC(["text"]).next(),
    /a chunk of Arrow IPC must be a Uint8Array/);
  await assert.rejects(uvarrow.fromIPC([Buffer.alloc(100, 7)]).next(),
    { code: "EPROTO" });
});

test("a source is destroyed when its stream is left", async () => {
  const source = new Readable({ read() {} });
  const stream = uvarrow.fromIPC(source);
  const step = stream.next();
  await new Promise(setImmediate);
  await stream.return();
  assert.equal((await step).done, true);
  assert.equal(source.destroyed, true);
});

test("fromBatches() passes on batches, with back-pressure", async () => {
  let made = 0;
  const batches = async function* () {
    for await (const batch of numbers({ batches: 200, rows: 10 })) {
      made++;
      yield batch;
    }
  };
  const stream = uvarrow.fromBatches(batches(), { window: 4 });
  await stream.next();
  for (let i = 0; i < 50; i++) await new Promise(setImmediate);
  assert(made < 100, `${made} were made`);
  assert.deepEqual(await collect(stream), range(10, 2000));
});

test("map() calls a function for each batch, in order", async () => {
  const seen = [];
  let running = 0;
  let most = 0;
  const stream = numbers({ batches: 20, rows: 5 }).map(async (batch) => {
    most = Math.max(most, ++running);
    for (let i = 0; i < 1000 && most < 2; i++)
      await new Promise(setImmediate);
    seen.push(batch.ordinal);
    running--;
    return batch.ordinal % 2 === 0 ? batch : null;
  }, { concurrency: 4 });
  const kept = await collect(stream);
  assert.deepEqual(kept, range(0, 100).filter((n) => n / 5 % 2 < 1));
  assert.equal(seen.length, 20);
  assert(most > 1 && most <= 4, `${most} at one time`);
});

test("an exception of map() arrives as itself", async () => {
  const reason = new TypeError("no such column");
  const stream = numbers().map(() => {
    throw reason;
  });
  await assert.rejects(stream.next(), (error) => error === reason);
  await assert.rejects(numbers().map(() => 1).next(),
    /the result of the function of map\(\) must be a Batch or null/);
  await assert.rejects(uvarrow.merge(numbers({ batches: 1, ms: -1 }),
    numbers().map(() => {
      throw reason;
    })).next(), (error) => error === reason);
});

test("map() can give another schema", async () => {
  const narrow = await numbers().schema();
  narrow.children[0].format = "i";
  const stream = numbers({ batches: 2 }).map(async (batch) => {
    const [result] = await uvarrow.fromBatches([batch]).cast(narrow).readAll();
    return result;
  }, { schema: narrow });
  const [batch] = await stream.readAll();
  assert.equal(batch.schema.children[0].format, "i");
});

test("map() keeps the asynchronous context", async () => {
  const storage = new AsyncLocalStorage();
  const stream = storage.run("context", () =>
    numbers().map((batch) => {
      assert.equal(storage.getStore(), "context");
      return batch;
    }));
  assert.equal((await stream.readAll()).length, 3);
});

test("a function of map() that never returns does not hold up an end",
  async () => {
    const stream = numbers().map(() => new Promise(() => {}));
    const step = stream.next();
    await new Promise(setImmediate);
    await stream.return();
    assert.equal((await step).done, true);
  });

test("an owner lives until its stream is released", async () => {
  let owner = { name: "the table" };
  const weak = new WeakRef(owner);
  const { numbersAddon, collectGarbage, collectNow } =
    require("./support/kit.js");
  const stream = uvarrow.fromPointer(numbersAddon.open(1e9, 5, 0, -1),
    { owner });
  owner = undefined;
  await stream.next();
  await new Promise(setImmediate);
  collectNow();
  assert.notEqual(weak.deref(), undefined);
  await stream.return();
  await collectGarbage(() => weak.deref() === undefined);
  assert.equal(weak.deref(), undefined);
});

test("sources that block take no thread of Node.js", async () => {
  const stuck = Array.from({ length: 8 }, () => numbers({ ms: -1 }));
  const steps = stuck.map((stream) => stream.next());
  const content = await fs.promises.readFile(__filename); // needs one
  assert(content.length > 0);
  await Promise.all(stuck.map((stream) => stream.return()));
  await Promise.all(steps);
});

test("a fast source lets the loop run", async () => {
  let ticks = 0;
  let isOver = false;
  const tick = () => {
    ticks++;
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await collect(numbers({ batches: 3000, rows: 1 }));
  isOver = true;
  assert(ticks >= 3000 / 64, `the loop ran ${ticks} times`);
});

test("rows of each source are there", async () => {
  const [batch] = await uvarrow.fromBatches(
    await numbers({ batches: 1 }).readAll()).readAll();
  assert.deepEqual(values(batch), range(0, 10));
});
