// SPDX-License-Identifier: Apache-2.0
// Batches: their buffers, their memory, and when that is freed.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { collect, collectGarbage, numbers, numbersAddon, range, uvarrow,
        values } = require("./support/kit.js");

const liveBatches = () => numbersAddon.live()[1];

test("data has the buffers, validity first", async () => {
  const [batch] = await numbers({ batches: 1, rows: 3 }).readAll();
  const { data } = batch;
  assert.equal(data.length, 3);
  assert.equal(data.field, batch.schema);
  const [child] = data.children;
  assert.equal(child.field.name, "n");
  assert.deepEqual(child.buffers.map(({ byteLength }) => byteLength), [0, 24]);
  assert.equal(child.nullCount, 0);
  assert.equal(batch.data, data); // made once
});

test("a slice has an offset", async () => {
  const [, batch] = await numbers({ batches: 1, rows: 100 })
    .rebatch({ rows: 60 }).readAll();
  assert.deepEqual(values(batch), range(60, 100));
});

test("buffers from 8 KiB on are borrowed, and smaller ones copied", async () => {
  const before = liveBatches();
  const [small] = await numbers({ batches: 1, rows: 1023 }).readAll();
  const [large] = await numbers({ batches: 1, rows: 1024 }).readAll();
  const copy = small.data.children[0].buffers[1];
  const borrowed = large.data.children[0].buffers[1];
  small.close();
  large.close();
  assert.equal(copy.byteLength, 1023 * 8); // its own memory
  assert.equal(borrowed.byteLength, 0); // detached
  await collectGarbage(() => liveBatches() <= before);
  assert(liveBatches() <= before);
});

test("copyBelow decides", async () => {
  const [none] = await numbers({ batches: 1, rows: 4 }, { copyBelow: 0 })
    .readAll();
  const borrowed = none.data.children[0].buffers[1];
  assert.equal(borrowed.byteLength, 32);
  none.close();
  assert.equal(borrowed.byteLength, 0);
  const [all] = await numbers({ batches: 1, rows: 1e5 },
    { copyBelow: Infinity }).readAll();
  const copied = all.data.children[0].buffers[1];
  all.close();
  assert.equal(copied.byteLength, 8e5);
});

test("close() frees a batch at once, and its data is gone", async () => {
  const before = liveBatches();
  const stream = numbers({ batches: 1, rows: 1e4 });
  const { value: batch } = await stream.next();
  assert.equal((await stream.next()).done, true);
  assert.equal(liveBatches(), before + 1);
  batch.close();
  assert.equal(liveBatches(), before);
  assert.throws(() => batch.data, { code: "EPIPE" });
  assert.throws(() => batch.toIPC(), { code: "EPIPE" });
  batch.close();
  batch[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  assert.equal(batch.numRows, 1e4);
  assert.equal(batch.schema.format, "+s");
});

// An old value on the stack may keep one in Bun.
const spare = process.versions.bun ? 1 : 0;

test("data outlives the batch, and both are freed by a collection", async () => {
  await collectGarbage(() => false, 5); // the batches of tests before
  const before = liveBatches();
  const kept = await (async () => { // no frame of a function has the view itself
    const [batch] = await numbers({ batches: 1, rows: 1e5 }).readAll();
    return [batch.data.children[0].buffers[1]];
  })();
  await collectGarbage(() => liveBatches() <= before, 5);
  assert.equal(liveBatches(), before + 1);
  assert.equal(kept.map(({ buffer }) => new BigInt64Array(buffer)[99999])[0],
    99999n);
  kept.pop();
  await collectGarbage(() => liveBatches() <= before);
  assert(liveBatches() <= before + spare, `${liveBatches()} are left`);
});

test("V8 is told of a batch until its buffers are made", async () => {
  await collectGarbage(() => liveBatches() === 0);
  const { external } = process.memoryUsage();
  const [batch] = await numbers({ batches: 1, rows: 4e6 }).readAll();
  const held = uvarrow.stats().bytesHeld;
  assert(held >= 32e6);
  assert.equal(batch.data.children[0].buffers[1].byteLength, 32e6);
  assert(uvarrow.stats().bytesHeld <= held - 32e6); // V8 counts them itself
  assert(process.memoryUsage().external - external > 31e6);
  batch.close();
});

test("a stream that is collected is dropped", async () => {
  const [before] = numbersAddon.live();
  for (let i = 0; i < 4; i++)
    (() => void numbers({ batches: 1e9, rows: 1 }).next())();
  const left = () => numbersAddon.live()[0] - before;
  await collectGarbage(() => left() <= spare);
  assert(left() <= spare, `${left()} are left`);
});

test("toIPC() gives a stream of this batch alone", async () => {
  const [, batch] = await numbers({ batches: 2, rows: 50 }).readAll();
  for (const compression of ["none", "lz4", "zstd"]) {
    const bytes = batch.toIPC({ compression });
    assert(bytes instanceof Uint8Array);
    assert.deepEqual(await collect(uvarrow.fromIPC([bytes])), range(50, 100));
  }
  assert.throws(() => batch.toIPC({ compression: "gzip" }),
    /compression must be one of 'none', 'lz4', 'zstd'/);
});
