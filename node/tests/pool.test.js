// SPDX-License-Identifier: Apache-2.0
// Databases, by the ADBC driver for SQLite.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");
const { collect, numbers, range, uvarrow, values } =
  require("./support/kit.js");
const { Pool } = uvarrow;

const driver = process.env.UVA_TEST_DRIVER;
const skip = driver ? false : "the ADBC driver for SQLite is not here";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "uvarrow-"));
const uri = path.join(folder, "a.db");
let pool;

test.before(async () => {
  if (skip) return;
  pool = new Pool({ driver, uri });
  await pool.ingest("numbers", numbers({ batches: 10, rows: 100 }));
});
test.after(() => fs.rmSync(folder, { recursive: true }));

test("a query gives its rows", { skip }, async () => {
  assert.deepEqual(
    await collect(pool.query("SELECT n FROM numbers ORDER BY n")),
    range(0, 1000));
});

test("parameters are in order, or named", { skip }, async () => {
  const sql = "SELECT n FROM numbers WHERE n >= ? AND n < ? ORDER BY n";
  assert.deepEqual(await collect(pool.query(sql, [3, 5n])), [3, 4]);
  assert.deepEqual(await collect(pool.query(
    "SELECT n FROM numbers WHERE n = :one", { one: 7 })), [7]);
  const texts = await pool.query("SELECT ?1 || typeof(?2) || typeof(?3) AS t",
    ["é", null, 1.5]).readAll();
  const [, , bytes] = texts[0].data.children[0].buffers;
  assert.equal(Buffer.from(bytes).toString(), "énullreal");
  assert.throws(() => pool.query(sql, [2n ** 64n, 1]), { code: "EOVERFLOW" });
  assert.throws(() => pool.query(sql, [{}, 1]), /parameter 1 must be null/);
});

test("a date and bytes are parameters", { skip }, async () => {
  const [batch] = await pool.query("SELECT length(?) AS a, hex(?) AS b",
    [new Date(0), new Uint8Array([1, 255])]).readAll();
  assert.equal(values(batch)[0], "1970-01-01T00:00:00.000Z".length);
  assert.equal(Buffer.from(batch.data.children[1].buffers[2]).toString(),
    "01FF");
});

test("rows of batches are parameters", { skip }, async () => {
  const [batch] = await numbers({ batches: 1, rows: 3 }).readAll();
  assert.deepEqual(await collect(pool.query("SELECT n FROM numbers WHERE n = ?",
    batch)), [0, 1, 2]);
});

test("execute() gives how many rows were changed", { skip }, async () => {
  await pool.execute("CREATE TABLE t (a)");
  assert.equal(await pool.execute("INSERT INTO t VALUES (1), (2)"), 2);
  assert.equal(await pool.execute("DELETE FROM t WHERE a = ?", [1]), 1);
});

test("an error has the metadata of the driver", { skip }, async () => {
  await assert.rejects(pool.query("SELECT nothing FROM nowhere").next(),
    (error) => {
      assert(error instanceof uvarrow.UvarrowError);
      assert.match(error.message, /nowhere/);
      assert.equal(typeof error.metadata["adbc.status"], "string");
      return true;
    });
});

test("ingest() takes streams, batches and bytes", { skip }, async () => {
  const count = async (table) =>
    (await collect(pool.query(`SELECT count(*) FROM ${table}`)))[0];
  assert.equal(await pool.ingest("a", numbers()), 30);
  assert.equal(await pool.ingest("a", await numbers().readAll(),
    { mode: "append" }), 30);
  assert.equal(await pool.ingest("a", numbers().toIPC(), { mode: "append" }),
    30);
  assert.equal(await count("a"), 90);
  await pool.ingest("a", numbers({ batches: 1 }), { mode: "replace" });
  assert.equal(await count("a"), 10);
  await assert.rejects(pool.ingest("a", numbers(), { mode: "create" }));
  await assert.rejects(pool.ingest("a", numbers(), { mode: "other" }),
    /mode must be one of 'create', 'append', 'replace', 'createAppend'/);
  await assert.rejects(pool.ingest("a", "text"), /rows must be/);
});

test("an ingest that is aborted writes no row", { skip }, async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const rows = async function* () {
    for await (const batch of numbers({ batches: 1e6, rows: 10 })) {
      yield batch;
      if (batch.ordinal === 20) controller.abort(reason);
    }
  };
  await assert.rejects(pool.ingest("aborted", rows(),
    { signal: controller.signal }), (error) => error === reason);
  await assert.rejects(pool.query("SELECT * FROM aborted").next());
});

test("a source of an ingest fails it with its own error", { skip }, async () => {
  const reason = new Error("no more rows");
  const rows = async function* () {
    yield* await numbers().readAll();
    throw reason;
  };
  await assert.rejects(pool.ingest("failed", rows()),
    (error) => error === reason);
});

test("a session is a transaction", { skip }, async () => {
  await pool.execute("CREATE TABLE s (a)");
  const session = pool.session();
  await session.execute("INSERT INTO s VALUES (1)");
  await session.rollback();
  await session.execute("INSERT INTO s VALUES (2)");
  await session.commit();
  await session.execute("INSERT INTO s VALUES (3)");
  await session.close(); // rolls back
  assert.deepEqual(await collect(pool.query("SELECT a FROM s")), [2]);
});

test("a query without an end is aborted", { skip }, async () => {
  const signal = AbortSignal.timeout(20);
  await assert.rejects(pool.query("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL " +
    "SELECT x + 1 FROM c) SELECT count(*) FROM c", [], { signal }).next(),
  { name: "TimeoutError" });
});

test("objects and statistics", { skip }, async () => {
  const batches = await pool.objects({ depth: 3 }).readAll();
  assert(batches[0].numRows > 0);
  const { connectionsMax, queries } = pool.stats();
  assert(connectionsMax > 0 && queries > 0);
});

test("a pool that is closed has no queries", { skip }, async () => {
  const other = new Pool({ driver, uri });
  const open = other.query("SELECT n FROM numbers ORDER BY n LIMIT 2");
  await other.close();
  assert.throws(() => other.query("SELECT 1"), { code: "EPIPE" });
  assert.deepEqual(await collect(open), [0, 1]); // it was made before
  await assert.rejects(new Pool("nosuchdriver:x").query("SELECT 1").next(),
    { code: "ENOENT" });
});
