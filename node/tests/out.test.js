// SPDX-License-Identifier: Apache-2.0
// Bytes out: into responses, files and other outputs.
"use strict";
const assert = require("node:assert/strict");
const { once } = require("node:events");
const http = require("node:http");
const net = require("node:net");
const { PassThrough, Writable } = require("node:stream");
const { text } = require("node:stream/consumers");
const { test } = require("node:test");
const { createGzip, gunzipSync } = require("node:zlib");
const { collect, numbers, numbersAddon, range, uvarrow } =
  require("./support/kit.js");

/** Serves one answer after the other by `handler`. */
async function serve(t, handler) {
  const server = http.createServer(handler);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

test("each format is written", async () => {
  const options = { batches: 2, rows: 2 };
  assert.equal(await text(numbers(options).toCSV()), "n\n0\n1\n2\n3\n");
  assert.equal(await text(numbers(options).toCSV({ header: false, crlf: true })),
    "0\r\n1\r\n2\r\n3\r\n");
  assert.equal(await text(numbers(options).toJSON()),
    '{"n":0}\n{"n":1}\n{"n":2}\n{"n":3}\n');
  assert.equal(await text(numbers(options).toWeb({ format: "csv" })),
    "n\n0\n1\n2\n3\n");
  assert.deepEqual(await collect(uvarrow.fromIPC(numbers(options).toIPC())),
    range(0, 4));
  assert.deepEqual(await collect(uvarrow.fromIPC(numbers(options).toWeb())),
    range(0, 4));
  assert.throws(() => numbers().toWeb({ format: "xml" }), /format must be one/);
  assert.throws(() => numbers().toCSV({ delimiter: ";;" }), /delimiter must be/);
});

test("a stream without batches has a schema and an end", async () => {
  const empty = numbers({ batches: 0 });
  assert.equal((await collect(uvarrow.fromIPC(empty.toIPC()))).length, 0);
});

test("pipeTo() writes an answer, which fetch() reads", async (t) => {
  let written;
  const url = await serve(t, (request, response) => {
    written = numbers({ batches: 40, rows: 1e4 }).pipeTo(response);
  });
  const answer = await fetch(url);
  assert.deepEqual(await collect(uvarrow.fromIPC(answer.body)),
    range(0, 400000));
  assert((await written) > 400000 * 8);
});

test("a slow client holds back the source, and each batch is freed", async (t) => {
  const before = numbersAddon.live()[1];
  let done;
  const url = await serve(t, (request, response) => {
    done = numbers({ batches: 400, rows: 16384 }, { window: 8 })
      .pipeTo(response).then(() => undefined, (error) => error);
  });
  const socket = net.connect(new URL(url).port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  let most = 0;
  let read = 0;
  socket.on("data", (chunk) => {
    read += chunk.length;
    most = Math.max(most, numbersAddon.live()[1] - before);
    socket.pause();
    setImmediate(() => socket.resume());
  });
  while (read < 20e6) await new Promise(setImmediate);
  assert(most <= 64, `${most} batches were alive`);
  socket.destroy();
  assert.equal((await done).code, "ERR_STREAM_PREMATURE_CLOSE");
});

test("a failure before the first byte leaves the answer to the caller",
  async (t) => {
    const url = await serve(t, async (request, response) => {
      try {
        await numbers({ batches: 1, fail: 0 }).map((batch) => batch)
          .timeout({ open: 1e6 }).pipeTo(response);
      } catch (error) {
        if (!response.headersSent) {
          response.statusCode = 500;
          response.end(error.code);
        }
      }
    });
    const answer = await fetch(url).catch((error) => error);
    if (answer instanceof Error) return; // the schema had been written
    assert.equal(await answer.text(), "EIO");
  });

test("schema() beside a ReadableStream gives its failure", async () => {
  const failing = numbers({ batches: 1, fail: 0 });
  await assert.rejects(failing.toWeb().getReader().read(), { code: "EIO" });
  await assert.rejects(failing.schema(), { code: "EIO" });
  const whole = numbers({ batches: 1 });
  const bytes = whole.toWeb();
  await whole.schema();
  assert.deepEqual(await collect(uvarrow.fromIPC(bytes)), range(0, 10));
});

test("a failure after the first byte cuts the answer off", async (t) => {
  let failure;
  const url = await serve(t, (request, response) => {
    numbers({ batches: 50, rows: 1e4, fail: 30 }).pipeTo(response)
      .catch((error) => {
        failure = error;
      });
  });
  await assert.rejects(async () => {
    const answer = await fetch(url);
    await answer.arrayBuffer();
  });
  assert.equal(failure.code, "EIO");
});

test("an output that keeps its chunks has them", async () => {
  const through = new PassThrough(); // its callback comes before it is read
  const written = numbers({ batches: 10, rows: 1e4 }).pipeTo(through);
  assert.deepEqual(await collect(uvarrow.fromIPC(through)), range(0, 100000));
  await written;
});

test("a write() that a middleware has replaced ends, too", async (t) => {
  const url = await serve(t, (request, response) => {
    const gzip = createGzip();
    const end = response.end.bind(response);
    const write = response.write.bind(response);
    gzip.on("data", (chunk) => write(chunk));
    gzip.on("end", () => end());
    response.write = (chunk) => gzip.write(chunk); // without a callback
    response.end = (done) => gzip.end(done);
    numbers({ batches: 3 }).pipeTo(response, { format: "csv" });
  });
  const answer = await fetch(url);
  const body = Buffer.from(await answer.arrayBuffer());
  assert.equal(gunzipSync(body).toString().split("\n").length, 32);
});

test("end: false leaves the output open", async () => {
  const through = new PassThrough();
  const read = text(through);
  await numbers({ batches: 1, rows: 1 }).pipeTo(through,
    { format: "csv", end: false });
  through.end("more");
  assert.equal(await read, "n\n0\nmore");
});

test("an output that fails is the error", async () => {
  const reason = new Error("disk full");
  const out = new Writable({
    highWaterMark: 1,
    write(chunk, encoding, done) {
      done(reason);
    },
  });
  await assert.rejects(numbers({ batches: 1e6, rows: 1e4 }).pipeTo(out),
    (error) => error === reason);
});

test("an abort ends a pipe", async () => {
  const controller = new AbortController();
  const out = new Writable({ write() {} }); // never done
  const written = numbers({ batches: 1e6, rows: 1e4 }).pipeTo(out,
    { signal: controller.signal });
  await new Promise(setImmediate);
  const reason = new Error("stop");
  controller.abort(reason);
  await assert.rejects(written, (error) => error === reason);
});

test("a reader that leaves drops the stream", async () => {
  const readable = numbers({ batches: 1e9 }).toIPC();
  for await (const chunk of readable) {
    assert(chunk.length > 0);
    break;
  }
  const web = numbers({ batches: 1e9 }).toWeb();
  for await (const chunk of web) {
    assert(chunk.length > 0);
    break;
  }
});
