// SPDX-License-Identifier: Apache-2.0
// What the tests share: sources, and other processes of JavaScript.
"use strict";
const { execFile } = require("node:child_process");
const path = require("node:path");

// On another processor, in qemu, Node.js has not the path of its emulator.
process.execPath = process.env.UVA_TEST_NODE ?? process.execPath;

const uvarrow = require("../..");
const numbersAddon = require(process.env.UVA_TEST_NODE_NUMBERS);

/** A stream of batches of numbers from 0 on. */
function numbers({ batches = 3, rows = 10, ms = 0, fail = -1 } = {}, how) {
  const address = numbersAddon.open(batches, rows, ms, fail);
  try {
    return uvarrow.fromPointer(address, how);
  } finally {
    numbersAddon.release(address); // fromPointer() has moved it, or has failed
  }
}

/** The numbers of a batch of numbers(). */
function values(batch) {
  const { buffers, length, offset } = batch.data.children[0];
  const [, bytes] = buffers;
  return [...new BigInt64Array(bytes.buffer, bytes.byteOffset,
    bytes.byteLength / 8)].slice(offset, offset + length).map(Number);
}

async function collect(stream) {
  const out = [];
  for await (const batch of stream) out.push(...values(batch));
  return out;
}

const range = (from, to) =>
  Array.from({ length: to - from }, (_, i) => from + i);

/** Runs code in another process, in which all of this is defined. Gives its exit
 * status, its signal, and its output. */
function run(code, { args = [], env = {} } = {}) {
  const head = `"use strict"; const kit = require(${JSON.stringify(__filename)});
    const { uvarrow, numbers, values, collect, numbersAddon } = kit;`;
  return new Promise((resolve) => {
    execFile(process.execPath, [...args, "-e", head + code],
      { env: { ...process.env, ...env } },
      (error, stdout, stderr) => resolve({
        status: error === null ? 0 : error.code, signal: error?.signal ?? null,
        stdout, stderr,
      }));
  });
}

const collectNow = globalThis.gc ?? (() => globalThis.Bun.gc(true));

/** Lets the garbage collector and its finalizers run until `isDone`, at most so
 * often. */
async function collectGarbage(isDone, times = 500) {
  for (let i = 0; i < times && !isDone(); i++) {
    await new Promise(setImmediate); // a WeakRef keeps its object until then
    collectNow();
    await new Promise(setImmediate);
  }
}

module.exports = {
  collect, collectGarbage, collectNow, flights: process.env.UVA_TEST_NODE_DATABASE,
  numbers, numbersAddon, path, range, run, uvarrow, values,
};
