// SPDX-License-Identifier: Apache-2.0
// The addon, and its news: it is turned by the event loop, and tells after a turn
// which of the objects that it knows by numbers have something new.
"use strict";
const { UvarrowError } = require("./error.js");

function inWorkerOfDeno() {
  if (process.versions.deno === undefined) return false;
  return !require("node:worker_threads").isMainThread ||
    typeof globalThis.WorkerGlobalScope === "function" &&
    globalThis instanceof globalThis.WorkerGlobalScope;
}

if (inWorkerOfDeno()) {
  throw new UvarrowError("ENOTSUP", -95, "uvarrow does not run in a worker of " +
    "Deno, which ends without a call to the addon: use it on the main thread");
}

const native = require("./addon.js");

// Node.js has a libuv, by which the descriptor is watched; others make turns by
// a thread-safe function. UVARROW_HOST is for tests.
const MODES = new Map([["watch", 0], ["post", 1]]);
const isNode = process.versions.bun === undefined &&
  process.versions.deno === undefined;
const mode = process.env.UVARROW_HOST ?? (isNode ? "watch" : "post");

// The kinds of news, as in addon.h
const READY = 0, CALL = 1, FREED = 2, WRITTEN = 3, WRITABLE = 4;

/** Makes a call for which no one takes an exception. A failure of Node-API may be
 * a momentary one; then the end of the object makes up for the call. */
function sure(call) {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      return call();
    } catch {
      // once more
    }
  }
  return undefined;
}

const awaited = new Map(); // number -> function, while the process waits for it
const expected = new Map(); // in the same way, but the process may end
const called = new Map(); // number of a map or a retry -> function
const freed = new Map(); // number -> an object that must live until then

/** Waits for news of a number, and keeps the process meanwhile. */
function wait(id) {
  return new Promise((resolve) => {
    if (awaited.size === 0) sure(() => native.keepAlive(true));
    awaited.set(id, resolve);
  });
}

/** Ends a wait, as news would. */
function wake(id) {
  const resolve = awaited.get(id);
  if (resolve === undefined) return;
  awaited.delete(id);
  resolve();
  if (awaited.size === 0) sure(() => native.keepAlive(false));
}

/** Waits for news of a number, and does not keep the process. */
function expect(id) {
  return new Promise((resolve) => expected.set(id, resolve));
}

function expectedCame(id) {
  const resolve = expected.get(id);
  expected.delete(id);
  resolve?.();
}

function onNews(kind, id, value) {
  if (kind === READY) wake(id);
  else if (kind === CALL) called.get(id)?.(value);
  else if (kind === FREED) {
    called.delete(id);
    freed.delete(id);
  } else if (kind === WRITTEN || kind === WRITABLE) expectedCame(id);
}

const makeError = (code, errno, message, metadata) =>
  new UvarrowError(code, errno, message, metadata);

/** Gives the next stream of a retry; null: there is none. */
const onRetry = (id, attempt, error) =>
  called.get(id)?.(error, attempt) ?? null;

const numbers = native.start(MODES.get(mode) ?? 0, onNews, makeError, onRetry);

// Places in `numbers`, as in addon.h
const ID = 0, ROWS = 1, ORDINAL = 2, BYTES = 3, KEEPER = 4;

/** What a call of the addon gives, of which undefined is a failure. */
function given(value) {
  if (value === undefined) {
    throw new UvarrowError("EIO", -5, "a call of Node-API has failed");
  }
  return value;
}

module.exports = {
  BYTES, ID, KEEPER, ORDINAL, ROWS,
  called, expect, expectedCame, freed, given, native, numbers, sure, wait,
  wake,
};
