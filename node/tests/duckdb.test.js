// SPDX-License-Identifier: Apache-2.0
// DuckDB, by the library that it has for each platform: rows, also by HTTP, and an
// abort.
"use strict";
const assert = require("node:assert/strict");
const { once } = require("node:events");
const http = require("node:http");
const { test } = require("node:test");
const { range, uvarrow } = require("./support/kit.js");

const driver = process.env.UVA_TEST_DUCKDB;
const skip = driver ? false : "DuckDB's library is not here";
const rows = (count) => `SELECT range FROM range(${count})`;
const open = () => new uvarrow.Pool({ driver });

async function numbersOf(stream) {
  const out = [];
  for await (const { data } of stream) {
    const [{ buffers: [, bytes], length, offset }] = data.children;
    out.push(...new BigInt64Array(bytes.buffer, bytes.byteOffset,
      bytes.byteLength / 8).slice(offset, offset + length));
  }
  return out.map(Number);
}

test("rows of a query with a parameter", { skip }, async () => {
  const pool = open();
  const stream = pool.query(`${rows(10000)} WHERE range >= ?`, [9000]);
  assert.deepEqual(await numbersOf(stream), range(9000, 10000));
  const [batch] = await pool.query("SELECT * FROM (VALUES " +
    "(1, 'x'), (2, 'y')) t (a, b)").readAll();
  let text = "";
  const some = batch.filter([false, true]).select(["b"]);
  for await (const chunk of uvarrow.fromBatches([some]).toJSON()) text += chunk;
  assert.equal(text, '{"b":"y"}\n');
  await assert.rejects(pool.execute("SELEC"), /SELEC/);
  await pool.close();
});

test("an answer by HTTP", { skip }, async (t) => {
  const server = http.createServer((request, response) =>
    open().query(rows(100000)).pipeTo(response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const { body } = await fetch(`http://127.0.0.1:${server.address().port}`);
  assert.deepEqual(await numbersOf(uvarrow.fromIPC(body)), range(0, 100000));
});

test("an abort ends a query", { skip }, async () => {
  const controller = new AbortController();
  const stream = open().query(`SELECT count(*) FROM range(${1e9}) a, ` +
    "range(1000) b WHERE hash(a.range + b.range) = 1", [],
  { signal: controller.signal });
  const step = stream.next();
  setImmediate(() => controller.abort(new Error("enough")));
  await assert.rejects(step, /enough/);
  await stream.close();
});
