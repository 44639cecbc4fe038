// SPDX-License-Identifier: Apache-2.0
// Some of the columns and rows of a batch, and of a stream.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { usual } = require("./support/fixtures.js");
const { collect, collectGarbage, numbers, numbersAddon, range, uvarrow,
        values } = require("./support/kit.js");

const liveBatches = () => numbersAddon.live()[1];
const names = ({ schema }) => schema.children.map(({ name }) => name);

/** Rows as JSON: of the batches, by the encoder of the library. */
async function rowsOf(...batches) {
  let text = "";
  for await (const chunk of uvarrow.fromBatches(batches).toJSON()) text += chunk;
  return text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
}

const batchOf = async (source, how) =>
  (await uvarrow.fromIPC(source, how).readAll())[0];

test("select() gives columns by name or index, in their order", async () => {
  const batch = await batchOf(usual); // n, t, d, l
  const some = batch.select(["l", 0, "d"]);
  assert.deepEqual(names(some), ["l", "n", "d"]);
  assert.equal(some.schema.children[2].dictionary.format, "u");
  assert.equal(some.numRows, 4);
  assert.equal(some.ordinal, batch.ordinal);
  assert(some.byteLength < batch.byteLength);
  assert.deepEqual(await rowsOf(some), (await rowsOf(batch)).map(
    ({ l, n, d }) => ({ l, n, d })));
  assert.deepEqual(names(batch), ["n", "t", "d", "l"]);
  assert.equal(batch.select([]).numRows, 4);
  assert.equal(batch.select(["n"]).schema, batch.select(["n"]).schema);
});

test("select() copies no data, which lives without the first batch", async () => {
  const before = liveBatches();
  const [batch] = await numbers({ batches: 1, rows: 1e4 }).readAll();
  const { buffer } = batch.data.children[0].buffers[1];
  const whole = batch.select(["n"]);
  const some = whole.filter(true);
  const twice = some.select([0]);
  for (const each of [batch, whole, some]) each.close();
  assert.equal(buffer.byteLength, 0); // it is detached
  assert.equal(liveBatches(), before + 1);
  assert.deepEqual(names(twice), ["n"]);
  assert.deepEqual(values(twice), range(0, 1e4));
  assert.throws(() => batch.select(["n"]), { code: "EPIPE" });
  assert.throws(() => batch.filter(true), { code: "EPIPE" });
  twice.close();
  await collectGarbage(() => liveBatches() <= before); // of ArrayBuffers
  assert.equal(liveBatches(), before);
});

test("select() refuses columns that are not there, or twice", async () => {
  const batch = await batchOf(usual);
  for (const [columns, message] of [
    [["n", "x"], "the batch has no column 'x'"],
    [[4], "the batch has no column '4'"], [[0.5], /no column '0.5'/],
    [[-1], /no column '-1'/], [[undefined], /no column 'undefined'/],
    [["n", 0], "column 'n' is selected twice"]])
    assert.throws(() => batch.select(columns), { code: "EINVAL", message });
  for (const columns of [undefined, "n", new Set(["n"])])
    assert.throws(() => batch.select(columns), /columns must be an array/);
});

test("filter() gives the rows of a mask", async () => {
  const batch = await batchOf(usual);
  const rows = await rowsOf(batch);
  for (const mask of [[true, false, false, true], [1, null, undefined, "yes"],
    Uint8Array.of(1, 0, 0, 7), [1n, 0n, 0, {}]]) {
    const some = batch.filter(mask);
    assert.equal(some.numRows, 2);
    assert.deepEqual(await rowsOf(some), [rows[0], rows[3]]);
    assert.equal(some.schema, batch.schema);
  }
  assert.deepEqual(await rowsOf(batch.filter([0, 1, 1, 0])), rows.slice(1, 3));
  assert.deepEqual(await rowsOf(batch.filter(true)), rows);
  assert.equal(batch.filter(false).numRows, 0);
  assert.equal(batch.filter([0, 0, 0, 0]).numRows, 0);
  const [long] = await numbers({ batches: 1, rows: 99 }).readAll();
  assert.deepEqual(values(long.filter(range(0, 99).map((n) => n % 7 === 0))),
    range(0, 15).map((n) => n * 7));
});

test("a mask of another kind or length is refused", async () => {
  const batch = await batchOf(usual);
  const like = { length: 4, at: () => true }; // as a column of flechette is
  for (const mask of [undefined, null, 1, "yes!", [1, 1, 1], like,
    new Uint8Array(5), new DataView(new ArrayBuffer(4))])
    assert.throws(() => batch.filter(mask), {
      name: "TypeError", message: "mask must be a boolean, or an array with a " +
        "value for each of the 4 rows" });
});

test("a stage passes on the rows that a function selects", async () => {
  const odd = (batch) => values(batch).map((n) => n % 2);
  assert.deepEqual(await collect(numbers({ batches: 3, rows: 4 }).filter(odd)),
    [1, 3, 5, 7, 9, 11]);
  const slow = numbers({ batches: 20, rows: 5 }).filter(async (batch) => {
    await new Promise(setImmediate);
    return values(batch).map((n) => n >= 93);
  }, { concurrency: 4 });
  assert.deepEqual(await collect(slow), range(93, 100));
});

test("a batch without selected rows is left out, and freed", async () => {
  await collectGarbage(() => liveBatches() === 0);
  const before = liveBatches();
  const stream = numbers({ batches: 10, rows: 2000 })
    .filter(({ ordinal }) => ordinal % 5 === 4);
  const kept = await stream.readAll();
  assert.deepEqual(kept.map(({ numRows, ordinal }) => [numRows, ordinal]),
    [[2000, 4], [2000, 9]]);
  await collectGarbage(() => liveBatches() <= before + 2);
  assert.equal(liveBatches(), before + 2);
  for (const batch of kept) batch.close();
  await collectGarbage(() => liveBatches() <= before);
  assert.equal(liveBatches(), before);
});

test("failures of the function of filter() arrive as themselves", async () => {
  await assert.rejects(numbers().filter(() => { throw new RangeError("why"); })
    .readAll(), { name: "RangeError", message: "why" });
  await assert.rejects(numbers().filter(() => [true]).readAll(),
    /mask must be a boolean, or an array with a value for each of the 10 rows/);
  assert.throws(() => numbers().filter([true]),
    /the function of filter\(\) must be a function/);
  assert.throws(() => numbers().filter(() => true, { concurrency: -1 }),
    /concurrency must be a number/);
});
