// SPDX-License-Identifier: Apache-2.0
// Batches as others read them: by batch.toIPC(), with the packages of npm.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { unusual, usual } = require("./support/fixtures.js");
const { uvarrow } = require("./support/kit.js");
const { packages } = require("./support/packages.js");

const arrow = packages("apache-arrow");
const flechette = packages("@uwdata/flechette");
const polars = packages("nodejs-polars");

const expected = {
  n: [1, null, 3, 4],
  t: ["a", null, "", "long text with ä"],
  d: ["yes", "no", null, "yes"],
  l: [[1, 2], [], null, [3]],
};

async function bytesOf(source, options) {
  const [batch] = await uvarrow.fromIPC(source).readAll();
  return batch.toIPC(options);
}

const columns = (names, column) =>
  Object.fromEntries(names.map((name) => [name, [...column(name)]
    .map((value) => ArrayBuffer.isView(value) || value?.toArray !== undefined
      ? [...value] : value)]));

test("apache-arrow reads it", { skip: arrow.skip }, async () => {
  const table = arrow["apache-arrow"].tableFromIPC(await bytesOf(usual));
  assert.deepEqual(columns(Object.keys(expected), (name) => table.getChild(name)),
    expected);
});

test("flechette reads it", { skip: flechette.skip }, async () => {
  const { tableFromIPC } = flechette.flechette;
  const table = tableFromIPC(await bytesOf(usual));
  assert.deepEqual(columns(Object.keys(expected), (name) => table.getChild(name)),
    expected);
});

test("flechette reads views and unions", { skip: flechette.skip }, async () => {
  const { tableFromIPC } = flechette.flechette;
  const table = tableFromIPC(await bytesOf(unusual));
  assert.deepEqual(columns(["d", "v", "du", "su"], (name) =>
    table.getChild(name)), {
    d: expected.d,
    v: ["short", null, "longer than twelve bytes", "and another long one"],
    du: [5, "a", 6, "b"], su: [5, "a", 6, "b"],
  });
});

for (const compression of ["none", "lz4", "zstd"]) {
  test(`polars reads it, ${compression}`, { skip: polars.skip }, async () => {
    const frame = polars["nodejs-polars"].readIPCStream(
      Buffer.from(await bytesOf(usual, { compression })));
    assert.deepEqual(columns(Object.keys(expected), (name) =>
      frame.getColumn(name).toArray()), expected);
  });
}

test("batches of apache-arrow and flechette come back", {
  skip: arrow.skip || flechette.skip,
}, async () => {
  const { tableFromIPC, tableToIPC } = arrow["apache-arrow"];
  const theirs = flechette.flechette;
  for (const bytes of [tableToIPC(tableFromIPC(usual)),
    theirs.tableToIPC(theirs.tableFromIPC(usual), { format: "stream" })]) {
    const again = tableFromIPC(await bytesOf(bytes));
    assert.deepEqual(columns(["n", "t", "d"], (name) => again.getChild(name)),
      { n: expected.n, t: expected.t, d: expected.d });
  }
});
