// SPDX-License-Identifier: Apache-2.0
// Sources: files, bytes and batches that JavaScript has, streams of other addons,
// and several streams as one.
"use strict";
const { fileURLToPath } = require("node:url");
const { Batch, handleOfBatch } = require("./batch.js");
const { count, flag, options, refuse, text } = require("./error.js");
const {
  ID, KEEPER, expect, expectedCame, freed, given, native, numbers, sure,
} = require("./native.js");
const {
  Stream, consumeStream, failStream, handleOfStream, newStream,
} = require("./stream.js");

// The most bytes that are given to the addon at once
const PIECE_BYTES = 1 << 28;

/** [batches, bytes] that are read ahead */
function windowOf({ window, maxBytes }) {
  return [count("window", window), count("maxBytes", maxBytes)];
}

/** Batches of a file of Arrow IPC, in either format. */
function file(path, how) {
  const { mmap } = options(how);
  const name = path instanceof URL ? fileURLToPath(path) : path;
  return newStream(given(native.file(text("path", name, false),
    ...windowOf(options(how)), flag("mmap", mmap))), how);
}

/** Batches of an ArrowArrayStream of another addon, which is taken. */
function fromPointer(address, how) {
  const { owner } = options(how);
  if (typeof address !== "bigint" || address === 0n) {
    refuse("address", "the address of an ArrowArrayStream, a bigint");
  }
  const handle = given(native.pointer(address, ...windowOf(options(how))));
  freed.set(numbers[KEEPER], owner); // it lives until the stream is released
  return newStream(handle, how);
}

// ---- what JavaScript has -----------------------------------------------------

function checkIterable(name, source) {
  if (typeof source === "string" ||
      typeof (source?.[Symbol.asyncIterator] ?? source?.[Symbol.iterator]) !==
      "function") {
    refuse(name, "an iterable, such as a Readable or a ReadableStream");
  }
}

const iteratorOf = (source) =>
  source[Symbol.asyncIterator]?.() ?? source[Symbol.iterator]();

/** Ends a source that is not needed any more. */
function abandon(source, iterator) {
  if (typeof source.destroy === "function") source.destroy();
  else Promise.resolve(iterator.return?.()).catch(() => {});
}

/** Passes on each item of a source, until `put` gives false. */
async function pump(source, put, end, stream) {
  let iterator;
  try {
    iterator = iteratorOf(source);
    for (;;) {
      const { value, done } = await iterator.next();
      if (done) break;
      if (!(await put(value))) {
        abandon(source, iterator);
        break;
      }
    }
    end();
  } catch (error) {
    const self = stream.deref();
    if (self !== undefined) failStream(self, error);
    end(error);
    if (iterator !== undefined) abandon(source, iterator);
  }
}

/** Makes a stream of `handle` that reads the source from its first step on. */
function pumped(handle, how, source, put, end, id) {
  const stream = newStream(handle, how);
  const self = new WeakRef(stream);
  let isBegun = false;
  return consumeStream(stream, undefined, {
    onStart() {
      isBegun = true;
      pump(source, put, end, self);
    },
    onEnd() {
      expectedCame(id);
      if (isBegun && typeof source.destroy === "function") source.destroy();
    },
  });
}

/** Writes a chunk in pieces. False: no one reads any more. */
async function writeChunk(writer, id, chunk) {
  if (!(chunk instanceof Uint8Array)) {
    refuse("a chunk of Arrow IPC", "a Uint8Array");
  }
  for (let at = 0; at < chunk.byteLength; at += PIECE_BYTES) {
    const written = given(native.write(writer,
      chunk.subarray(at, at + PIECE_BYTES)));
    if (written === null) return false;
    if (!written) await expect(id);
  }
  return true;
}

/** Batches of the bytes of Arrow IPC that arrive: a request, a file, fetch(). */
function fromIPC(source, how) {
  checkIterable("source", source);
  const bytes = source instanceof Uint8Array ? [source] : source;
  const writer = given(native.openWriter(...windowOf(options(how))));
  const id = numbers[ID];
  return pumped(given(native.writerStream(writer)), how, bytes,
    (chunk) => writeChunk(writer, id, chunk),
    () => sure(() => native.endWriter(writer)), id);
}

async function pushBatch(pusher, id, batch) {
  if (!(batch instanceof Batch)) refuse("an item of source", "a Batch");
  const pushed = given(native.push(pusher, handleOfBatch(batch)));
  if (pushed === false) await expect(id);
  return pushed !== null;
}

/** Batches that JavaScript has, or makes. */
function fromBatches(source, how) {
  checkIterable("source", source);
  const pusher = given(native.openPusher(...windowOf(options(how))));
  const id = numbers[ID];
  return pumped(given(native.pusherStream(pusher)), how, source,
    (batch) => pushBatch(pusher, id, batch),
    (error) => sure(() => native.closePusher(pusher, error === undefined ? null
      : String(error?.message ?? error))), id);
}

// ---- several streams ---------------------------------------------------------

function together(first, others, inOrder) {
  for (const stream of [first, ...others]) {
    if (!(stream instanceof Stream)) refuse("each argument", "a Stream");
  }
  for (const other of others) consumeStream(first, other);
  given(native.merge(handleOfStream(first), others.map(handleOfStream), inOrder,
    false));
  return first;
}

/** The batches of all streams, as they come. */
const merge = (first, ...others) => together(first, others, false);

/** The batches of one stream after the other. */
const concat = (first, ...others) => together(first, others, true);

module.exports = {
  concat, file, fromBatches, fromIPC, fromPointer, merge, windowOf,
};
