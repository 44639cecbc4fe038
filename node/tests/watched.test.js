// SPDX-License-Identifier: Apache-2.0
// A runtime's descriptor is not watched any more when it is closed: its number is
// used again at once.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { run } = require("./support/kit.js");

const WORKERS = 4;

test("no descriptor is closed while a loop watches it", async () => {
  const { LD_PRELOAD: before, UVA_TEST_NODE_WATCHED: library } = process.env;
  const code = `
    require(${JSON.stringify(require.resolve("./support/kit.js"))})
      .numbers({ batches: 1e6 }).next()
      .then(() => require("node:worker_threads").parentPort.postMessage(""));
    setInterval(() => {}, 1000);`;
  const { status, stderr } = await run(`
    const { Worker } = require("node:worker_threads");
    for (let i = 0; i < ${WORKERS}; i++) {
      const worker = new Worker(${JSON.stringify(code)}, { eval: true });
      worker.once("message", () => worker.terminate());
    }`, {
    env: { LD_PRELOAD: before ? `${before}:${library}` : library },
  });
  assert.equal(status, 0, stderr);
  const [, closed, watched] = /closed (\d+) loops, watched (\d+)\n/.exec(stderr);
  // of each worker the runtime, and the loop of Node.js
  assert(Number(closed) >= 2 * WORKERS, stderr);
  assert.equal(watched, "0");
});
