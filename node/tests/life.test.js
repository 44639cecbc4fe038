// SPDX-License-Identifier: Apache-2.0
// The end of a process and of workers, at any time.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { run } = require("./support/kit.js");

// .ci/nightly repeats it more often.
const runs = Number(process.env.UVA_TEST_NODE_RUNS ?? 5);
const kit = JSON.stringify(require.resolve("./support/kit.js"));

async function ends(code, status = 0, output = "", how) {
  const out = await run(code, how);
  assert.deepEqual({ status: out.status, signal: out.signal,
                     stdout: out.stdout },
  { status, signal: null, stdout: output }, out.stderr);
  assert.doesNotMatch(out.stderr, /Sanitizer|runtime error:/);
  return out;
}

test("a stream that nobody awaits keeps nothing alive", async () => {
  await ends(`
    globalThis.kept = numbers({ batches: 1e9, rows: 10 });
    kept.next().then(() => console.log("one"));`, 0, "one\n");
  await ends(`
    globalThis.kept = numbers({ batches: 1, ms: -1 });
    kept.next().then(({ done }) => console.log(done));
    setImmediate(() => kept.return());`, 0, "true\n");
});

test("a source of JavaScript that nobody awaits keeps nothing alive",
  async () => {
    await ends(`
      globalThis.kept = uvarrow.fromIPC((async function* () {
        for (;;) yield Buffer.alloc(0);
      })());
      console.log("made");`, 0, "made\n");
  });

test("a step that waits keeps the process", async () => {
  await ends(`
    numbers({ batches: 1, rows: 1, ms: 50 }).next()
      .then(({ value }) => console.log(value.numRows));`, 0, "1\n");
});

test("process.exit() at any time, also with a source that is stuck",
  async () => {
    for (let i = 0; i < runs; i++) {
      await ends(`
        (async () => {
          let left = ${i * 37};
          for await (const batch of numbers({ batches: 1e9, rows: 10 })) {
            values(batch);
            if (left-- === 0) process.exit(7);
          }
        })();
        for (let i = 0; i < 8; i++) numbers({ batches: 1, ms: -1 }).next();`,
      7);
    }
  });

test("the process ends by itself with a source that is stuck", async () => {
  await ends(`
    globalThis.kept = numbers({ batches: 1, ms: -1 });
    const controller = new AbortController();
    const stream = numbers({ batches: 1, ms: -1 },
      { signal: controller.signal });
    stream.next().catch(() => console.log("aborted"));
    setImmediate(() => controller.abort());`, 0, "aborted\n");
});

test("an exception that is not caught ends the process as usual", async () => {
  for (let i = 0; i < runs; i++) {
    const { stderr } = await ends(`
      (async () => {
        let left = ${i * 37};
        for await (const batch of numbers({ batches: 1e9, rows: 10 })) {
          if (left-- === 0) throw new Error("not caught");
        }
      })();`, 1);
    assert.match(stderr, /not caught/);
  }
  const { stderr } = await ends(`
    numbers({ batches: 1e9 }).next().then(() => {
      setImmediate(() => { throw new Error("not caught"); });
    });`, 1);
  assert.match(stderr, /not caught/);
});

test("an exception of map() that nobody awaits is no crash", async () => {
  await ends(`
    const stream = numbers().map(() => { throw new Error("inside"); });
    stream.next().catch((error) => console.log(error.message));`, 0,
  "inside\n");
});

// In each worker: streams in each state, and batches with their buffers.
const inWorker = `
  const { numbers, values, uvarrow } = require(${kit});
  const { parentPort } = require("node:worker_threads");
  const read = async (stream) => {
    for await (const batch of stream) values(batch);
  };
  read(numbers({ batches: 1e9, rows: 10 }));
  read(numbers({ batches: 1e9, rows: 10 }).map((batch) => batch));
  read(numbers({ batches: 1e9, rows: 2000 }, { copyBelow: 0 }));
  read(uvarrow.fromIPC(numbers({ batches: 1e9, rows: 100 }).toIPC()));
  numbers({ batches: 1, ms: -1 }).next();
  numbers({ batches: 9, rows: 9 }).map(() => new Promise(() => {})).next();
  setImmediate(() => parentPort.postMessage("runs"));`;

for (const host of ["watch", "post"]) {
  test(`twelve workers are terminated in the midst of streams (${host})`,
    async () => {
      for (let i = 0; i < Math.ceil(runs / 5); i++) {
        await ends(`
          const { Worker } = require("node:worker_threads");
          const code = ${JSON.stringify(inWorker)};
          (async () => {
            await Promise.all(Array.from({ length: 12 }, async (_, i) => {
              const worker = new Worker(code, { eval: true });
              worker.on("error", (error) => { throw error; });
              await new Promise((resolve) => worker.once("message", resolve));
              for (; i > 0; i--) await new Promise(setImmediate);
              await worker.terminate();
            }));
            console.log((await collect(numbers())).length);
          })();`, 0, "30\n", { env: { UVARROW_HOST: host } });
      }
    });
}

test("a worker ends by itself, or by process.exit()", async () => {
  await ends(`
    const { Worker } = require("node:worker_threads");
    const one = (code) => new Promise((resolve) =>
      new Worker(\`const { numbers, collect } = require(${kit}); \${code}\`,
        { eval: true }).on("exit", resolve));
    (async () => {
      console.log(await one("collect(numbers())"));
      console.log(await one(
        "numbers({ batches: 1e9 }).next().then(() => process.exit(3))"));
      console.log(await one("globalThis.s = numbers({ batches: 1, ms: -1 });" +
        "s.next(); setImmediate(() => process.exit(4))"));
    })();`, 0, "0\n3\n4\n");
});

// Node.js unloads the addons of a worker that ends, in whose code threads may be.
test("the addon stays where only a worker has loaded it", async () => {
  const { execFile } = require("node:child_process");
  const code = `
    const { Worker } = require("node:worker_threads");
    const { readFileSync } = require("node:fs");
    const isThere = (addon) =>
      readFileSync("/proc/self/maps", "utf8").includes(addon);
    const addons = ["UVARROW_ADDON", "UVA_TEST_NODE_UNLOADED"]
      .map((name) => process.env[name]);
    const worker = new Worker(${JSON.stringify(`
      require(process.env.UVA_TEST_NODE_UNLOADED); ${inWorker}`)}, { eval: true });
    worker.on("message", () => {
      console.log(...addons.map(isThere));
      worker.terminate();
    });
    worker.on("exit", () => console.log(...addons.map(isThere)));`;
  const stdout = await new Promise((resolve, reject) => {
    execFile(process.execPath, ["-e", code], (error, out) =>
      error === null ? resolve(out) : reject(error));
  });
  // the second one, which lets itself be unloaded, shows that this is looked at
  assert.equal(stdout, "true true\ntrue false\n");
});

test("both ways of turning", async () => {
  for (const host of ["watch", "post"]) {
    await ends(`
      (async () => {
        console.log((await collect(numbers({ batches: 500, rows: 2 }))).length);
        globalThis.kept = numbers({ batches: 1e9 });
        await kept.next();
      })();`, 0, "1000\n", { env: { UVARROW_HOST: host } });
  }
});

test("a worker of Deno is refused with a sentence", async () => {
  await ends(`
    const { Worker } = require("node:worker_threads");
    new Worker(\`
      Object.defineProperty(process.versions, "deno", { value: "2.0.0" });
      try {
        require(${JSON.stringify(require.resolve(".."))});
      } catch (error) {
        console.log(error.code, error.message);
      }\`, { eval: true });`, 0,
  "ENOTSUP uvarrow does not run in a worker of Deno, which ends without a " +
    "call to the addon: use it on the main thread\n");
});
