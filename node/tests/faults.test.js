// SPDX-License-Identifier: Apache-2.0
// Each call of Node-API fails in turn: once, and with all calls after it, as
// while a worker is terminated. Nothing crashes, waits for ever, or is lost, and
// a result is whole or an exception. It uses an addon with a table between (see
// support/faulty.c).
"use strict";
process.env.UVARROW_ADDON = process.env.UVA_TEST_NODE_FAULTY;
const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const { test } = require("node:test");
const { collect, collectGarbage, numbers, numbersAddon, range, uvarrow,
        values } = require("./support/kit.js");
const native = require(process.env.UVARROW_ADDON);

test("each call of the addon that can fail is in the table", () => {
  const read = (...names) => fs.readFileSync(path.join(__dirname, ...names),
    "utf8");
  const source = fs.readdirSync(path.join(__dirname, "../src"))
    .filter((name) => name.endsWith(".c"))
    .map((name) => read("../src", name)).join("");
  const table = read("support/faulty.c");
  const calls = new Set(source.match(/\bnapi_[a-z0-9_]+(?=\()/g));
  // These end something, or are called by another thread.
  for (const end of ["napi_async_destroy", "napi_call_threadsafe_function",
    "napi_close_callback_scope", "napi_close_handle_scope",
    "napi_delete_reference", "napi_fatal_exception",
    "napi_release_threadsafe_function", "napi_remove_async_cleanup_hook",
    "napi_remove_env_cleanup_hook", "napi_register_module_v1"]) {
    calls.delete(end);
  }
  assert(calls.size > 40);
  for (const call of calls) assert(table.includes(`${call},`) ||
    table.includes(`__wrap_${call}(`), call);
});

const isFree = () => {
  const [streams, batches] = numbersAddon.live();
  return streams === 0 && batches === 0 && uvarrow.stats().batchesHeld === 0;
};

/** Runs `scenario` with call n failing, for each n, until it makes fewer. The
 * scenario gives whether it was whole, or throws. */
async function sweep(scenario, last = (n) => n) {
  let n = 1;
  for (;; n++) {
    let result;
    native.fault(n, last(n));
    try {
      result = await scenario();
    } catch (error) {
      assert(error instanceof Error, String(error));
    }
    const calls = native.fault(0, 0);
    if (result !== undefined) assert(result, `call ${n}`);
    await collectGarbage(isFree);
    assert(isFree(), `after call ${n}: ${numbersAddon.live()}, ` +
      JSON.stringify(uvarrow.stats()));
    if (calls < n) break;
  }
  assert(n > 20, `only ${n} calls`);
}

const isWhole = (found, length) =>
  assert.deepEqual(found, range(0, length)) ?? true;

const scenarios = {
  async "a stream, and the buffers of its batches"() {
    return isWhole(await collect(numbers({ batches: 2, rows: 3 },
      { copyBelow: 0 })), 6);
  },
  async "a schema, and a stream that fails"() {
    const stream = numbers({ batches: 1, rows: 1, fail: 0 }, { name: "n" });
    assert.equal((await stream.schema()).children[0].name, "n");
    await stream.next().then(() => assert.fail(), (error) => {
      if (error.message.includes("run out")) return;
      throw error;
    });
    return true;
  },
  async "a function, stages, and two streams"() {
    const stream = uvarrow.concat(
      numbers({ batches: 1, rows: 4 }).map(async (batch) => batch),
      numbers({ batches: 1, rows: 0 })).limit(9);
    return isWhole(await collect(stream), 4);
  },
  async "a stream that is opened again"() {
    return isWhole(await collect(numbers({ batches: 1, fail: 0 })
      .retry(() => numbers({ batches: 1, rows: 3 }), { delay: 1 })), 3);
  },
  async "bytes out and in"() {
    const bytes = [];
    for await (const chunk of numbers({ batches: 1, rows: 5 }).toIPC()) {
      bytes.push(Buffer.from(chunk));
    }
    return isWhole(await collect(uvarrow.fromIPC(bytes)), 5);
  },
  async "some columns and rows"() {
    const found = await collect(numbers({ batches: 2, rows: 4 })
      .filter((batch) => [1, 0, 1, batch.ordinal]));
    const [batch] = await numbers({ batches: 1, rows: 3 }).readAll();
    const rows = values(batch.select(["n"]).filter([0, 1, 1]));
    assert.deepEqual([found, rows], [[0, 2, 4, 6, 7], [1, 2]]);
    return true;
  },
  async "batches in, and a batch as bytes"() {
    const batches = await numbers({ batches: 2, rows: 2 }).readAll();
    const found = await collect(uvarrow.fromBatches(batches));
    batches[0].toIPC();
    for (const batch of batches) {
      values(batch);
      batch.close();
    }
    return isWhole(found, 4);
  },
};

if (process.env.UVA_TEST_DRIVER) {
  scenarios["a query with parameters, and its statistics"] = async () => {
    const pool = new uvarrow.Pool({
      driver: process.env.UVA_TEST_DRIVER, uri: ":memory:",
    });
    const session = pool.session({ autocommit: true });
    await session.execute("CREATE TABLE t (a, b)");
    await session.execute("INSERT INTO t VALUES (?, ?)", [7, "text"]);
    const found = await collect(session.query(
      "SELECT a FROM t WHERE b = :b", { b: "text" }));
    assert.equal(typeof pool.stats().queries, "number");
    await session.close();
    await pool.close();
    return found.length === 1 && found[0] === 7;
  };
}

for (const [name, scenario] of Object.entries(scenarios)) {
  test(`${name}: each call fails once`, () => sweep(scenario));
}

/** So many turns of the loop. */
async function turns(count) {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}

test("from one call on, all fail, as while a worker is terminated", async () => {
  for (const scenario of Object.values(scenarios)) {
    let n = 0;
    let calls;
    do {
      native.fault(++n, Number.MAX_SAFE_INTEGER);
      await Promise.race([scenario().catch(() => {}), turns(30)]);
      calls = native.fault(0, 0);
      await turns(3);
    } while (calls >= n && n < 300);
  }
  await collectGarbage(isFree); // no crash
});

test("a start that fails leaves nothing, and can be made again", async () => {
  const { Worker } = require("node:worker_threads");
  const code = `
    const native = require(process.env.UVA_TEST_NODE_FAULTY);
    const { workerData, parentPort } = require("node:worker_threads");
    let n = 1;
    for (;; n++) {
      let numbers;
      native.fault(n, n);
      try {
        numbers = native.start(workerData, () => {}, (code) => new Error(code),
          () => null);
      } catch {
        continue;
      }
      if (numbers !== undefined) break;
    }
    parentPort.postMessage(n);`;
  for (const workerData of [0, 1]) {
    const worker = new Worker(code, { eval: true, workerData });
    const calls = await new Promise((resolve, reject) => {
      worker.on("message", resolve);
      worker.on("error", reject);
    });
    assert(calls > 10, `only ${calls} calls`);
  }
});
