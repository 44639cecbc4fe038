// SPDX-License-Identifier: Apache-2.0
// A stream: an asynchronous iterator over batches, its stages, and its ends.
"use strict";
const { AsyncResource } = require("node:async_hooks");
const { Batch, COPY_BELOW, handleOfBatch, newBatch } = require("./batch.js");
const { encoding } = require("./encode.js");
const {
  UvarrowError, callable, count, flag, options, refuse, text,
} = require("./error.js");
const { ID, called, given, native, numbers, sure, wait, wake } =
  require("./native.js");
const { makeReadable, makeWeb, writeTo } = require("./out.js");

// So many batches are taken, for so long, until other work of the loop runs.
const RUN_BATCHES = 64;
const RUN_MS = 1;

const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
const TOKEN = Symbol("uvarrow");
const END = Object.freeze({ value: undefined, done: true });

/** A Field as the addon reads it. */
function packField(field) {
  if (field === null || typeof field !== "object") {
    refuse("schema", "a Field");
  }
  const { name, format, nullable, flags, metadata, children, dictionary } =
    field;
  return {
    name: text("the name of a field", name ?? "", false),
    format: text("the format of a field", format, false),
    flags: ((flags ?? 0) & ~2) | (nullable === false ? 0 : 2),
    metadata: Object.entries(metadata ?? {}).flat(),
    children: (children ?? []).map(packField),
    dictionary: dictionary ? packField(dictionary) : undefined,
  };
}

let handleOfStream; // for the addon
let consumeStream; // it becomes a part of another one
let failStream;

class Stream {
  #handle;
  #id;
  #known = { schema: undefined, copyBelow: COPY_BELOW };
  #info; // [schema, metadata]
  #tail = null; // the last step that was asked for, while one waits
  #taken = 0; // since other work of the loop ran
  #since = 0;
  #state = "new"; // then "started", "given" (away), "over"
  #failure; // { error } of a function of JavaScript
  #onFailure; // of an output, which may be slow
  #parts = []; // streams that are read by this one
  #twin; // the other branch of a tee, which has functions and sources
  #functions = new Map(); // number -> function of a map
  #onStart = []; // of sources in JavaScript
  #onEnd = [];

  constructor(token, handle, how = {}) {
    if (token !== TOKEN) refuse("a Stream", "made by a source");
    this.#handle = handle;
    this.#id = numbers[ID];
    const { signal, name, copyBelow } = options(how);
    this.#known.copyBelow = count("copyBelow", copyBelow, COPY_BELOW);
    if (name !== undefined) native.setName(handle, text("name", name, false));
    if (signal !== undefined) this.#follow(signal);
  }

  // ---- steps ----------------------------------------------------------------

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    if (this.#state === "given") return Promise.reject(this.#givenAway());
    if (this.#tail === null && !this.#isDue()) {
      let step;
      try {
        step = this.#take();
      } catch (error) {
        return Promise.reject(error);
      }
      if (step !== null) return Promise.resolve(step);
    }
    return this.#later(() => this.#take());
  }

  async return() {
    this.#finish();
    return END;
  }

  #givenAway() {
    return new UvarrowError("EBUSY", -16, "the stream is a part of another one");
  }

  /** Whether other work of the loop runs first. */
  #isDue() {
    const now = performance.now();
    if (this.#taken === 0) this.#since = now;
    return this.#taken >= RUN_BATCHES || now - this.#since > RUN_MS;
  }

  #start() {
    if (this.#state !== "new") return;
    this.#state = "started";
    this.#startSources();
  }

  #startSources() {
    for (const start of this.#onStart.splice(0)) start();
    for (const part of this.#parts) part.#startSources();
    this.#twin?.#startSources();
  }

  /** A result; null: none is there now. */
  #take() {
    if (this.#state === "over") return END;
    this.#start();
    const handle = this.#try(native.take, this.#handle);
    if (handle === null) return null;
    if (handle === false) {
      this.#finish();
      return END;
    }
    this.#taken++;
    return { value: newBatch(handle, this.#known), done: false };
  }

  /** Calls the addon; an error is the end. */
  #try(call, ...args) {
    try {
      return given(call(...args));
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** The exception to throw, instead of the one that the addon has made. */
  #fail(error) {
    this.#failure ??= this.#findFailure() ?? { error };
    this.#finish();
    return this.#failure.error;
  }

  #findFailure() {
    if (this.#failure !== undefined) return this.#failure;
    for (const part of this.#parts) {
      const failure = part.#findFailure();
      if (failure !== undefined) return failure;
    }
    return this.#twin?.#findFailure();
  }

  /** Has steps follow one another, until `take` gives a result. */
  #later(take) {
    const step = this.#step(this.#tail, take);
    const clear = () => {
      if (this.#tail === step) this.#tail = null;
    };
    this.#tail = step;
    step.then(clear, clear);
    return step;
  }

  async #step(before, take) {
    if (before !== null) await before.catch(() => {});
    if (this.#isDue()) await new Promise(setImmediate);
    for (;;) {
      this.#taken = 0;
      const result = take();
      if (result !== null) return result;
      await wait(this.#id);
    }
  }

  // ---- ends -----------------------------------------------------------------

  /** Without a further batch. */
  #finish() {
    if (this.#state === "over" || this.#state === "given") return;
    this.#state = "over";
    sure(() => native.drop(this.#handle));
    this.#end();
    wake(this.#id);
  }

  #end() {
    for (const end of this.#onEnd.splice(0)) end();
    for (const part of this.#parts) part.#end();
  }

  /** Ends it with an exception of JavaScript. */
  #failWith(error) {
    this.#failure ??= { error };
    sure(() => native.cancel(this.#handle, String(error?.message ?? error)));
    this.#onFailure?.(error);
  }

  #follow(signal) {
    if (!(signal instanceof AbortSignal)) refuse("signal", "an AbortSignal");
    const self = new WeakRef(this); // the signal may live for long
    const abort = () => self.deref()?.#failWith(signal.reason);
    if (signal.aborted) {
      this.#failWith(signal.reason);
      return;
    }
    signal.addEventListener("abort", abort, { once: true });
    this.#onEnd.push(() => signal.removeEventListener("abort", abort));
  }

  cancel(reason) {
    if (this.#state === "over") return;
    native.cancel(this.#handle, text("reason", reason));
  }

  /** Cancels it, and waits for its end. */
  async close() {
    this.cancel();
    try {
      while (!(await this.next()).done) continue;
    } catch {
      // it has ended
    }
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }

  // ---- all of it ------------------------------------------------------------

  async readAll() {
    const batches = [];
    for await (const batch of this) batches.push(batch);
    return batches;
  }

  #takeInfo() {
    if (this.#info !== undefined) return this.#info;
    if (this.#state === "given") throw this.#givenAway();
    if (this.#state === "over") {
      throw this.#fail(new Error("the stream has ended without a schema"));
    }
    this.#start();
    const info = this.#try(native.info, this.#handle);
    if (info === false) {
      throw this.#fail(new Error("the stream has ended without a schema"));
    }
    if (info !== null) this.#info = info;
    return info;
  }

  async schema() {
    return (await this.#later(() => this.#takeInfo()))[0];
  }

  async metadata() {
    return (await this.#later(() => this.#takeInfo()))[1];
  }

  stats() {
    return this.#state === "over" ? [] : given(native.streamStats(this.#handle));
  }

  // ---- stages ---------------------------------------------------------------

  #stage(call, ...args) {
    if (this.#state !== "new") {
      refuse("a stage", "added before the stream is read");
    }
    given(call(this.#handle, ...args));
    return this;
  }

  limit(rows) {
    return this.#stage(native.limit, count("rows", rows));
  }

  rebatch(how) {
    const { rows, bytes, wait: ms } = options(how);
    return this.#stage(native.rebatch, count("rows", rows),
      count("bytes", bytes), count("wait", ms));
  }

  timeout(how) {
    const { open, first, between, total } = options(how);
    return this.#stage(native.timeout, count("open", open),
      count("first", first), count("between", between), count("total", total));
  }

  throttle(how) {
    const { batches, bytes } = options(how);
    return this.#stage(native.throttle, count("batches", batches),
      count("bytes", bytes));
  }

  parallel(workers, how) {
    const { ordered } = options(how);
    return this.#stage(native.parallel, count("workers", workers),
      flag("ordered", ordered, true) ? 0 : 1);
  }

  cast(schema) {
    return this.#stage(native.cast, packField(schema));
  }

  /** A function for each batch: it, or its promise, gives a Batch, or null for
   * none. */
  map(fn, how) {
    const { concurrency, ordered, schema } = options(how);
    const target = schema === undefined ? null : packField(schema);
    if (this.#state !== "new") {
      refuse("a stage", "added before the stream is read");
    }
    const bound = AsyncResource.bind(callable("the function of map()", fn));
    const id = given(native.map(this.#handle, count("concurrency", concurrency),
      !flag("ordered", ordered, true), target));
    const known = { schema: undefined, copyBelow: this.#known.copyBelow };
    const self = new WeakRef(this); // which has the function
    this.#functions.set(id, bound);
    called.set(id, (call) => Stream.#call(self.deref(), id, call, known));
    return this;
  }

  /** Passes on the rows of each batch that the mask of a function selects. */
  filter(fn, how) {
    callable("the function of filter()", fn);
    const { concurrency, ordered } = options(how);
    return this.map(async (batch) => {
      const rows = batch.filter(await fn(batch));
      if (rows.numRows > 0) return rows;
      rows.close();
      return null;
    }, { concurrency, ordered });
  }

  static async #call(self, id, [call, handle], known) {
    const batch = newBatch(handle, known);
    try {
      if (self === undefined) throw new Error("the stream was collected");
      const result = await self.#functions.get(id)(batch);
      if (result !== null && result !== undefined &&
          !(result instanceof Batch)) {
        refuse("the result of the function of map()", "a Batch or null");
      }
      given(native.give(call, result ? handleOfBatch(result) : null, null));
    } catch (error) {
      if (self !== undefined) self.#failure ??= { error };
      sure(() => native.give(call, null, String(error?.message ?? error)));
    }
  }

  /** When it has failed before its first batch, a function gives a stream to go on
   * with, or null to give up. */
  retry(again, how) {
    const { times, delay, delayMax } = options(how);
    callable("the function of retry()", again);
    if (this.#state !== "new") {
      refuse("a stage", "added before the stream is read");
    }
    const id = given(native.retry(this.#handle, count("times", times),
      count("delay", delay), count("delayMax", delayMax)));
    const self = new WeakRef(this);
    this.#functions.set(id, AsyncResource.bind(again));
    called.set(id, (error, attempt) =>
      self.deref()?.#again(id, error, attempt));
    return this;
  }

  /** Gives the external of a stream; throws nothing. */
  #again(id, error, attempt) {
    try {
      const failure = this.#findFailure()?.error ?? error;
      const next = this.#functions.get(id)(failure, attempt);
      if (next === null || next === undefined) return null;
      if (!(next instanceof Stream)) {
        refuse("the result of the function of retry()", "a Stream or null");
      }
      consumeStream(this, next);
      this.#parts = [next]; // the failure of the one before it is over
      this.#failure = undefined;
      next.#startSources();
      return next.#handle;
    } catch (thrown) {
      this.#failure = { error: thrown };
      return null;
    }
  }

  /** Another stream with the same batches. */
  tee(how) {
    if (this.#state !== "new") {
      refuse("a branch", "made before the stream is read");
    }
    const branch = newStream(given(native.tee(this.#handle)), how);
    branch.#twin = this;
    this.#onEnd = []; // its sources end when both branches have ended
    return branch;
  }

  // ---- bytes ----------------------------------------------------------------

  /** Gives a function that gives the next array of Buffers, undefined at the
   * end. */
  #encode(format, how, copyBelow) {
    this.#stage(native.encode, ...encoding(format, how));
    const take = () => {
      if (this.#state === "over") return undefined;
      this.#start();
      const part = this.#try(native.takePart, this.#handle, copyBelow);
      if (part !== false) {
        this.#taken++;
        return part;
      }
      this.#finish();
      return undefined;
    };
    return () => this.#later(take);
  }

  toIPC(how) {
    return this.#toReadable("arrow", how);
  }

  toCSV(how) {
    return this.#toReadable("csv", how);
  }

  toJSON(how) {
    return this.#toReadable("json", how);
  }

  #toReadable(format, how) {
    const next = this.#encode(format, how, COPY_BELOW * 2);
    return makeReadable(next, () => this.#finish());
  }

  toWeb(how) {
    const next = this.#encode(options(how).format, how, COPY_BELOW * 2);
    return makeWeb(next, () => this.#finish());
  }

  /** Writes it to a response, a socket or a file. Each batch is freed when it
   * was written. Gives the number of bytes. */
  pipeTo(out, how) {
    const { format, signal, end } = options(how);
    const ends = flag("end", end, true);
    if (typeof out?.write !== "function") refuse("out", "a Writable");
    const next = this.#encode(format, how, COPY_BELOW * 2);
    const drop = (error) => {
      if (error !== undefined) this.#failure ??= { error };
      this.#finish();
    };
    return writeTo(out, next, ends, drop, (fail) => {
      this.#onFailure = fail;
      if (signal !== undefined) this.#follow(signal);
      if (this.#failure !== undefined) fail(this.#failure.error);
    });
  }

  static {
    handleOfStream = (stream) => stream.#handle;
    failStream = (stream, error) => stream.#failWith(error);
    consumeStream = (whole, part, { onStart, onEnd } = {}) => {
      if (part !== undefined) {
        if (part.#state !== "new") {
          refuse("a part of a stream", "a Stream that is not read");
        }
        part.#state = "given";
        whole.#parts.push(part);
      }
      if (onStart !== undefined) whole.#onStart.push(onStart);
      if (onEnd !== undefined) whole.#onEnd.push(onEnd);
      return whole;
    };
  }
}

const newStream = (handle, how) => new Stream(TOKEN, handle, how);

module.exports = {
  Stream, consumeStream, failStream, handleOfStream, newStream,
};
