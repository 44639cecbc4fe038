// SPDX-License-Identifier: Apache-2.0
// uvarrow/flechette: columns on the buffers of batches, beside those that flechette
// decodes of the same batches as Arrow IPC.
"use strict";
const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { collectGarbage, numbers, numbersAddon, uvarrow } =
  require("./support/kit.js");
const { packages } = require("./support/packages.js");
const { types } = require("./support/types.js");

const { flechette, skip } = packages("@uwdata/flechette");
const { columnFromData, tableFromBatches } =
  skip ? {} : require("uvarrow/flechette");

/** Its own memory is a Uint8Array's; a Buffer's views are Buffers. */
const decoded = (batch, how) =>
  flechette.tableFromIPC(new Uint8Array(batch.toIPC()), how);

const batchesOf = (how, rows) => uvarrow.fromIPC(types, how)
  .rebatch({ rows }).readAll();

/** A type without the numbers of dictionaries, which are the file's. */
const typeOf = (column) => JSON.stringify(column.type, (key, value) =>
  key === "id" ? undefined : typeof value === "function" ? value.name
    : value instanceof Map ? [...value] : value);

function assertSame(mine, theirs) {
  assert.deepEqual(mine.names, theirs.names);
  assert.deepEqual(mine.schema.metadata, theirs.schema.metadata);
  assert.equal(mine.numRows, theirs.numRows);
  for (const name of theirs.names) {
    const [own, other] = [mine.getChild(name), theirs.getChild(name)];
    assert.equal(typeOf(own), typeOf(other), name);
    assert.deepEqual([...own], [...other], name);
    assert.deepEqual(own.toArray(), other.toArray(), name);
    assert.equal(own.nullCount, other.nullCount, name);
  }
  assert.deepEqual(mine.schema.fields.map(({ name, nullable, metadata }) =>
    [name, nullable, metadata]), theirs.schema.fields.map(
    ({ name, nullable, metadata }) => [name, nullable, metadata]));
}

const asObjects = {
  useDate: true, useDecimalInt: true, useBigInt: true, useBigIntTimestamp: true,
  useMap: true,
};

for (const [how, copyBelow] of [["copied", Infinity], ["borrowed", 0]]) {
  // 7 rows: slices begin within a byte of a bitmap, and within a run
  for (const rows of [20, 8, 7]) {
    test(`each type, ${how}, by ${rows} rows`, { skip }, async () => {
      for (const batch of await batchesOf({ copyBelow }, rows)) {
        assertSame(tableFromBatches(batch), decoded(batch));
        assertSame(tableFromBatches(batch, asObjects),
          decoded(batch, asObjects));
      }
    });
  }
}

test("flechette writes what it was given", { skip }, async () => {
  for (const batch of await batchesOf({}, 8)) {
    const table = tableFromBatches(batch);
    const bytes = flechette.tableToIPC(table, { format: "stream" });
    assertSame(table, flechette.tableFromIPC(bytes));
    const runs = table.getChild("runs_int16").data[0].children[0].values;
    assert(runs[0] > 0); // those before the slice are gone
    assert.equal(table.getChild("string_view").data[0].data.length,
      batch.data.children.find(({ field }) => field.name === "string_view")
        .buffers.length - 3);
  }
});

test("several batches are one table", { skip }, async () => {
  const batches = await batchesOf({}, 7);
  const table = tableFromBatches(batches);
  const [whole] = await batchesOf({}, 20);
  assert.equal(table.getChildAt(0).data.length, 3);
  assert.deepEqual(table.toArray(), decoded(whole).toArray());
  assert.equal(tableFromBatches(batches, { useProxy: true }).at(19).uint8, 96);
  assert.deepEqual([...columnFromData(batches.map(({ data }) =>
    data.children[10]))], Array.from({ length: 20 }, (_, i) => i));
});

test("numbers are not copied, and live as long as their column", { skip },
  async () => {
    const before = numbersAddon.live()[1];
    const kept = await (async () => { // no frame has the column itself
      const [batch] = await numbers({ batches: 1, rows: 1e4 }).readAll();
      const [, values] = batch.data.children[0].buffers;
      const found = tableFromBatches(batch, { useBigInt: true }).getChild("n");
      assert.equal(found.toArray().buffer, values.buffer);
      return [found];
    })();
    await collectGarbage(() => false, 5);
    assert.equal(numbersAddon.live()[1], before + 1);
    assert.deepEqual(kept.map((column) => column.at(9999)), [9999n]);
    kept.pop();
    await collectGarbage(() => numbersAddon.live()[1] <= before);
    assert.equal(numbersAddon.live()[1], before);
  });

test("a slice of texts and lists begins in the same memory", { skip },
  async () => {
    const [, batch] = await batchesOf({}, 7);
    const table = tableFromBatches(batch);
    for (const name of ["string", "list", "dictionary_int8", "decimal128"]) {
      const data = batch.data.children.find(({ field }) => field.name === name);
      const { offsets, values } = table.getChild(name).data[0];
      const view = offsets ?? values;
      assert.equal(view.buffer, data.buffers[1].buffer, name);
      assert(view.byteOffset > data.buffers[1].byteOffset, name);
    }
  });

test("a batch that is closed has no columns any more", { skip }, async () => {
  const [batch] = await numbers({ batches: 1, rows: 1e4 }).readAll();
  const table = tableFromBatches(batch);
  batch.close();
  assert.equal(table.getChildAt(0).data[0].values.length, 0);
  assert.throws(() => tableFromBatches(batch), { code: "EPIPE" });
});

/** An array of a format, without a batch. */
const array = (format, buffers, more = {}) => ({
  field: { name: "a", format, flags: 2, nullable: true, metadata: {},
           children: [] },
  length: 2, nullCount: -1, offset: 0, buffers, children: [], ...more,
});
const bytes = (...numbers) => new Uint8Array(Int32Array.from(numbers).buffer);

test("intervals of months and of days", { skip }, () => {
  const none = new Uint8Array(0);
  assert.deepEqual([...columnFromData(array("tiM", [none, bytes(1, 2, 3)],
    { offset: 1 }))], [2, 3]);
  const days = columnFromData(array("tiD", [new Uint8Array([0b101]),
    bytes(1, 2, 3, 4, 5, 6)], { offset: 1 }));
  assert.deepEqual([...days], [null, Int32Array.of(5, 6)]);
  assert.equal(days.nullCount, 1);
});

test("an offset of a whole is one of its children", { skip }, async () => {
  const none = new Uint8Array(0);
  const child = array("i", [new Uint8Array([0b01101]), bytes(0, 1, 2, 3, 4)],
    { length: 5, nullCount: 2 });
  const parent = (format, buffers, more) => {
    const out = array(format, buffers, { children: [child], ...more });
    out.field.children = [child.field];
    return out;
  };
  // rows 1 to 3 of the child: null, 2, 3
  const struct = parent("+s", [none], { offset: 1, length: 3 });
  const column = columnFromData(struct);
  assert.deepEqual([...column], [{ a: null }, { a: 2 }, { a: 3 }]);
  assert.equal(column.data[0].children[0].nullCount, 1);
  const ids = new Uint8Array(5);
  assert.deepEqual([...columnFromData(parent("+us:0", [ids],
    { offset: 1, length: 3 }))], [null, 2, 3]);
  const [pair] = [...columnFromData(parent("+w:2", [none],
    { offset: 1, length: 1 }))];
  assert.deepEqual([...pair], [2, 3]);
  const [batch] = await numbers({ batches: 1, rows: 5 }).readAll();
  const [only] = batch.data.children;
  Object.defineProperty(batch, "data", { value: {
    ...batch.data, offset: 2, length: 3, children: [only],
  } });
  assert.deepEqual(tableFromBatches(batch).toColumns(), {
    n: Float64Array.of(2, 3, 4),
  });
});

test("a type that flechette has not is refused by name", { skip }, () => {
  for (const format of ["d:20,-2", "d:20,2,512", "w", "tsx:", "tsquick:", "+vx",
    "toString", ""]) {
    assert.throws(() => columnFromData(array(format, [])), {
      name: "UvarrowError", code: "ENOTSUP",
      message: `flechette has no type for column 'a' of format '${format}'`,
    });
  }
  const inside = array("+s", []);
  inside.field.children = [{ ...inside.field, name: "b", format: "x" }];
  assert.throws(() => columnFromData(inside), /column 'a\.b' of format 'x'/);
});

test("arguments that do not fit are refused", { skip }, async () => {
  const [batch] = await numbers({ batches: 1 }).readAll();
  const [other] = await batchesOf({}, 20);
  assert.throws(() => tableFromBatches([batch, other]), {
    code: "EINVAL", message: "the batches have different schemas" });
  assert.throws(() => columnFromData(other.data.children.slice(2, 4)), {
    code: "EINVAL", message: "the arrays have different types" });
  for (const none of [undefined, [], [batch.data], 5])
    assert.throws(() => tableFromBatches(none), TypeError);
  for (const none of [undefined, [], batch, [1]])
    assert.throws(() => columnFromData(none), TypeError);
  assert.throws(() => tableFromBatches(batch, 1), /options must be an object/);
});

test("without flechette the error says what to install", {
  skip: process.versions.bun ? "Bun fetches a package that is missing" : false,
}, (t) => {
  const alone = fs.mkdtempSync(path.join(os.tmpdir(), "uvarrow-"));
  t.after(() => fs.rmSync(alone, { recursive: true }));
  fs.cpSync(path.join(__dirname, "../lib"), alone, { recursive: true });
  const { status, stderr } = spawnSync(process.execPath, ["-e",
    `require(${JSON.stringify(path.join(alone, "flechette.js"))})`],
  { encoding: "utf8", env: { ...process.env, NODE_PATH: "" } });
  assert.equal(status, 1);
  assert.match(stderr, /uvarrow\/flechette needs the package @uwdata\/flechette/);
});

test("import gives what require() gives", { skip }, async () => {
  const all = await import("uvarrow/flechette");
  assert.equal(all.tableFromBatches, tableFromBatches);
  assert.equal(all.columnFromData, columnFromData);
  assert.deepEqual(Object.keys(all).filter((name) => // Deno has them, too
    name !== "default" && name !== "module.exports").sort(),
  ["columnFromData", "tableFromBatches"]);
});
