// SPDX-License-Identifier: Apache-2.0
// Streams: steps, ends, and how errors arrive.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { collect, numbers, range, uvarrow, values } =
  require("./support/kit.js");
const { UvarrowError } = uvarrow;

test("for await gives each batch, and then the end", async () => {
  assert.deepEqual(await collect(numbers({ batches: 3, rows: 10 })),
    range(0, 30));
});

test("a batch states its rows, its place and its bytes", async () => {
  const [first, second] = await numbers({ batches: 2, rows: 5 }).readAll();
  assert.deepEqual([first.numRows, first.ordinal, first.byteLength],
    [5, 0, 40]);
  assert.equal(second.ordinal, 1);
});

test("steps that are asked for together come in order", async () => {
  const stream = numbers({ batches: 100, rows: 1, ms: 0 }, { window: 1 });
  const steps = await Promise.all(
    Array.from({ length: 102 }, () => stream.next()));
  assert.deepEqual(steps.slice(0, 100).map(({ value }) => values(value)[0]),
    range(0, 100));
  assert.deepEqual(steps.slice(100).map(({ done }) => done), [true, true]);
});

test("after the end each step is the end", async () => {
  const stream = numbers({ batches: 0 });
  assert.equal((await stream.next()).done, true);
  assert.equal((await stream.next()).done, true);
});

test("the schema is known before the first batch", async () => {
  const stream = numbers();
  const schema = await stream.schema();
  assert.equal(schema.format, "+s");
  assert.deepEqual(schema.children.map(({ name, format, nullable }) =>
    [name, format, nullable]), [["n", "l", true]]);
  assert.deepEqual(await stream.metadata(), {});
  assert.equal((await stream.readAll()).length, 3);
});

test("an error comes after the batches before it, once", async () => {
  const stream = numbers({ batches: 5, rows: 1, fail: 2 }, { name: "n" });
  assert.equal((await stream.next()).value.numRows, 1);
  assert.equal((await stream.next()).value.numRows, 1);
  await assert.rejects(stream.next(), (error) => {
    assert(error instanceof UvarrowError);
    assert.equal(error.name, "UvarrowError");
    assert.equal(error.code, "EIO");
    assert.equal(error.errno, -5);
    assert.deepEqual(error.metadata, {});
    assert.match(error.message, /^n: .*the numbers have run out/);
    return true;
  });
  assert.equal((await stream.next()).done, true);
});

test("break drops the stream", async () => {
  const stream = numbers({ batches: 1e9, rows: 1 });
  for await (const batch of stream) {
    assert.equal(batch.numRows, 1);
    break;
  }
  assert.equal((await stream.next()).done, true);
});

test("return() ends a step that waits", async () => {
  const stream = numbers({ batches: 1, ms: -1 });
  const step = stream.next();
  await stream.return();
  assert.equal((await step).done, true);
});

test("cancel() ends it with ECANCELED, also before the first step", async () => {
  const stream = numbers({ batches: 1, ms: -1 });
  const step = stream.next();
  stream.cancel("no longer needed");
  await assert.rejects(step, { code: "ECANCELED", message: /no longer needed/ });
  const other = numbers();
  other.cancel();
  await assert.rejects(other.next(), { code: "ECANCELED" });
});

test("close() waits for the end, and rejects nothing", async () => {
  const stream = numbers({ batches: 1e9, rows: 1 });
  await stream.next();
  await stream.close();
  assert.equal((await stream.next()).done, true);
  await numbers({ batches: 1, ms: -1 }).close();
  await numbers()[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
});

test("an AbortSignal rejects with its reason", async () => {
  const controller = new AbortController();
  const stream = numbers({ batches: 1, ms: -1 },
    { signal: controller.signal });
  const step = stream.next();
  const reason = new Error("the client has left");
  controller.abort(reason);
  await assert.rejects(step, (error) => error === reason);
  await assert.rejects(numbers({}, { signal: controller.signal }).next(),
    (error) => error === reason);
  await assert.rejects(
    numbers({ batches: 1, ms: -1 }, { signal: AbortSignal.timeout(1) }).next(),
    { name: "TimeoutError" });
});

test("a signal that comes after the end has no effect", async () => {
  const controller = new AbortController();
  const stream = numbers({}, { signal: controller.signal });
  assert.equal((await stream.readAll()).length, 3);
  controller.abort();
  assert.equal((await stream.next()).done, true);
});

test("stages are added before the stream is read", async () => {
  assert.deepEqual(await collect(numbers({ batches: 9, rows: 10 }).limit(25)),
    range(0, 25));
  const sizes = (await numbers({ batches: 4, rows: 5 }).rebatch({ rows: 8 })
    .readAll()).map(({ numRows }) => numRows);
  assert.deepEqual(sizes, [8, 8, 4]);
  const read = numbers();
  await read.next();
  assert.throws(() => read.limit(1), { code: "ERR_INVALID_ARG_TYPE" });
  assert.throws(() => numbers().rebatch({}), { code: "EINVAL" });
  assert.throws(() => numbers().limit(-1), TypeError);
});

test("a time-out names the limit", async () => {
  await assert.rejects(
    numbers({ batches: 1, ms: -1 }).timeout({ between: 5 }).next(),
    { code: "ETIMEDOUT" });
});

test("merge() and concat() read several streams as one", async () => {
  const merged = await collect(uvarrow.merge(numbers(), numbers(), numbers()));
  assert.deepEqual(merged.sort((a, b) => a - b),
    range(0, 90).map((n) => Math.floor(n / 3)));
  assert.deepEqual(await collect(uvarrow.concat(numbers({ batches: 1 }),
    numbers({ batches: 1 }))), [...range(0, 10), ...range(0, 10)]);
  const part = numbers();
  const whole = uvarrow.merge(numbers(), part);
  await assert.rejects(part.next(), { code: "EBUSY" });
  await part.return(); // the whole has it
  assert.equal((await collect(whole)).length, 60);
});

test("an error of a part is the error of the whole", async () => {
  const reason = new Error("this one");
  const part = numbers({ batches: 1, ms: -1 },
    { signal: AbortSignal.abort(reason) });
  await assert.rejects(uvarrow.merge(numbers({ batches: 1, ms: -1 }), part)
    .next(), (error) => error === reason);
});

test("a retry goes on with another stream", async () => {
  const seen = [];
  const stream = numbers({ fail: 0 }).retry((error, attempt) => {
    seen.push([attempt, error.code]);
    return numbers({ fail: attempt < 3 ? 0 : -1 });
  }, { times: 5, delay: 1 });
  assert.deepEqual(await collect(stream), range(0, 30));
  assert.deepEqual(seen, [[1, "EIO"], [2, "EIO"], [3, "EIO"]]);
});

test("a retry that gives up has the last failure", async () => {
  const failing = () => numbers({ fail: 0 });
  await assert.rejects(failing().retry(() => null, { delay: 1 }).next(),
    { code: "EIO" });
  await assert.rejects(failing().retry(failing, { times: 2, delay: 1 }).next(),
    { code: "EIO" });
  const reason = new Error("no");
  await assert.rejects(failing().retry(() => {
    throw reason;
  }, { delay: 1 }).next(), (error) => error === reason);
  await assert.rejects(failing().retry(() => 1, { delay: 1 }).next(),
    /the result of the function of retry\(\) must be a Stream or null/);
});

test("a tee gives each branch all batches", async () => {
  const first = numbers({ batches: 30, rows: 3 });
  const second = first.tee();
  const both = await Promise.all([collect(first), collect(second)]);
  assert.deepEqual(both, [range(0, 90), range(0, 90)]);
});

test("a cast changes the type, and refuses a value", async () => {
  const schema = await numbers().schema();
  schema.children[0].format = "i";
  const [batch] = await numbers().cast(schema).readAll();
  assert.equal(batch.schema.children[0].format, "i");
  assert.equal(batch.data.children[0].buffers[1].byteLength, 40);
  schema.children[0].format = "c";
  await assert.rejects(numbers({ batches: 1, rows: 200 }).cast(schema).next(),
    { code: "EOVERFLOW" });
});

test("statistics have a stage each", async () => {
  const stream = numbers({ batches: 4, rows: 2 }).rebatch({ rows: 4 });
  await stream.next();
  assert.equal(stream.stats().find(({ name }) => name === "rebatch")?.rows > 0,
    true);
  const names = ["none", "source", "consumer", "worker", "device", "memory",
                 "permit", "time", "over"];
  for (const { waiting } of stream.stats()) assert(names.includes(waiting));
  await stream.return();
  assert.deepEqual(stream.stats(), []);
  const { streamsOpen, turns } = uvarrow.stats();
  assert.equal(typeof streamsOpen, "number");
  assert(turns > 0);
});

test("import has the same objects as require()", async () => {
  const imported = await import("../index.mjs");
  const { default: all, ...names } = imported;
  assert.equal(all, uvarrow);
  assert.deepEqual(names, { ...uvarrow });
});

test("arguments that do not fit are TypeErrors that name them", () => {
  assert.throws(() => new uvarrow.Stream(), /a Stream must be made by a source/);
  assert.throws(() => new uvarrow.Batch(), /a Batch must be taken/);
  assert.throws(() => uvarrow.fromPointer(1), /address must be/);
  assert.throws(() => numbers({}, { signal: 1 }), /signal must be/);
  assert.throws(() => numbers({}, { window: -1 }), /window must be/);
  assert.throws(() => numbers({}, { window: 1e9 }).limit(1), { code: "EINVAL" });
  assert.throws(() => uvarrow.file("a\0b"), /path must be a string without NUL/);
  assert.throws(() => uvarrow.fromIPC("bytes"), /source must be an iterable/);
});
