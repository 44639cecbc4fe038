// SPDX-License-Identifier: Apache-2.0
// Bytes out of a stream: as a Readable, as a ReadableStream, and into a Writable.
"use strict";
const { WriteStream } = require("node:fs");
const { OutgoingMessage } = require("node:http");
const { Socket } = require("node:net");
const { Readable } = require("node:stream");
const { native } = require("./native.js");

const HIGH_BYTES = 1 << 20;

/** `next` gives arrays of Buffers; `drop` ends the stream. */
function makeReadable(next, drop) {
  return new Readable({
    highWaterMark: HIGH_BYTES,
    read() {
      next().then((part) => {
        if (part === undefined) this.push(null);
        else if (part.length === 0) this._read();
        else for (const chunk of part) this.push(chunk);
      }, (error) => this.destroy(error));
    },
    destroy(error, done) {
      drop();
      done(error);
    },
  });
}

function makeWeb(next, drop) {
  return new ReadableStream({
    async pull(controller) {
      let part;
      do part = await next(); while (part !== undefined && part.length === 0);
      if (part === undefined) controller.close();
      else for (const chunk of part) controller.enqueue(chunk);
    },
    cancel: drop,
  }, new ByteLengthQueuingStrategy({ highWaterMark: HIGH_BYTES }));
}

/** Whether no one uses a chunk any more when its callback is called. So it is for
 * the classes of Node.js that end in a system call, unless a middleware has
 * replaced their write(), as compression does. */
function releases(out) {
  return (out instanceof Socket || out instanceof OutgoingMessage ||
    out instanceof WriteStream) && !Object.hasOwn(out, "write");
}

/** Frees the memory of a batch; a short chunk may share its own with others. */
function detach(chunk) {
  const { buffer } = chunk;
  if (buffer.byteLength === chunk.byteLength && buffer.byteLength > 0) {
    native.detach(buffer);
  }
}

class Output {
  bytes = 0;
  failure; // { error }
  #out;
  #drop; // ends the stream
  #wake;
  #waiting = 0; // bytes that were given and are not written
  #releases;

  constructor(out, drop) {
    this.#out = out;
    this.#drop = drop;
    this.#releases = releases(out);
    this.onError = (error) => this.fail(error);
    this.onClose = () => this.fail(Object.assign(
      new Error("the output was closed before the end of the stream"),
      { code: "ERR_STREAM_PREMATURE_CLOSE" }));
    this.onDrain = () => this.#written(this.#releases ? 0 : this.#waiting);
    out.on("error", this.onError);
    out.on("close", this.onClose);
    out.on("drain", this.onDrain);
    if (out.destroyed) this.onClose();
  }

  fail(error) {
    if (this.failure !== undefined) return;
    this.failure = { error };
    this.#drop(error);
    this.#wake?.();
  }

  leave() {
    this.#out.off("close", this.onClose);
    this.#out.off("drain", this.onDrain);
    // an error that comes with a destroy() is not the first one
    setImmediate(() => this.#out.off("error", this.onError));
  }

  #written(size) {
    this.#waiting -= size;
    this.#wake?.();
  }

  write(part) {
    this.#out.cork?.();
    for (const chunk of part) this.#writeChunk(chunk);
    this.#out.uncork?.();
  }

  #writeChunk(chunk) {
    const size = chunk.byteLength;
    this.bytes += size;
    if (this.#releases) {
      this.#waiting += size;
      this.#out.write(chunk, () => {
        detach(chunk);
        this.#written(size);
      });
    } else if (!this.#out.write(chunk)) {
      this.#waiting = size; // until it drains
    }
  }

  async #until(isDone) {
    while (!isDone() && this.failure === undefined) {
      await new Promise((resolve) => { this.#wake = resolve; });
    }
    if (!isDone()) throw this.failure.error;
  }

  /** Waits until so many bytes, or fewer, are not written. */
  drain(most) {
    return this.#until(() => this.#waiting <= (this.#releases ? most : 0));
  }

  async end() {
    let isDone = false;
    this.#out.end(() => {
      isDone = true;
      this.#wake?.();
    });
    await this.#until(() => isDone);
  }
}

/** Writes all of it. `drop` ends the stream, with the failure of `out`; `follow`
 * has a function called with a failure of the stream. */
async function writeTo(out, next, ends, drop, follow) {
  const output = new Output(out, drop);
  follow((error) => output.fail(error));
  try {
    for (;;) {
      const part = await next();
      if (output.failure !== undefined) throw output.failure.error;
      if (part === undefined) break;
      output.write(part);
      await output.drain(HIGH_BYTES);
    }
    await output.drain(0);
    if (ends) await output.end();
    return output.bytes;
  } catch (error) {
    drop();
    if (output.bytes > 0) out.destroy?.(); // what was written looks cut off
    throw error;
  } finally {
    output.leave();
  }
}

module.exports = { makeReadable, makeWeb, writeTo };
