// SPDX-License-Identifier: Apache-2.0
// A process that figures.py measures: a program of Node.js that reads a table, or
// batches of numbers, or serves one client of HTTP, by one way.
//
//     node client.js WAY '{"flights": ..., ...}'
//
// WAY is the name of a function in WAYS, and the other argument has the places that
// figures.py knows. Prints a line of JSON: the figures by their names.
"use strict";
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const http = require("node:http");
const { pipeline } = require("node:stream/promises");
const { Worker, isMainThread, parentPort, workerData } =
  require("node:worker_threads");

const SQL = "SELECT * FROM flights";
const TICK = 5; // ms of the timer
const CHUNK = 1000; // rows that a worker gives at once

const [way, text] = isMainThread ? process.argv.slice(2) : workerData;
const places = JSON.parse(text);
const uvarrow = () => require(places.package);
const beside = () => require(places.beside);

// ---- what is measured ------------------------------------------------------------

/** What passes from begin() to end(), beside a timer on the loop. */
class Clock {
  #late = [];
  #figures = {};
  #due;
  #timer;

  constructor() {
    const tick = () => {
      const now = performance.now();
      this.#late.push(now - this.#due);
      this.#due = now + TICK;
      this.#timer = setTimeout(tick, TICK);
    };
    this.#due = performance.now() + TICK;
    this.#timer = setTimeout(tick, TICK);
  }

  begin() {
    this.#late.length = 0;
    this.#figures.cpu = process.cpuUsage();
    this.#figures.begun = performance.now();
  }

  first() {
    this.#figures.first ??= performance.now();
  }

  end() {
    this.#figures.seconds = (performance.now() - this.#figures.begun) / 1e3;
    this.#figures.cpu = process.cpuUsage(this.#figures.cpu);
  }

  /** After a last tick of the timer, which may be late */
  async figures() {
    await new Promise((resolve) => setTimeout(resolve, 2 * TICK));
    clearTimeout(this.#timer);
    const { begun, cpu, first, seconds } = this.#figures;
    const late = this.#late.sort((a, b) => a - b);
    return {
      seconds, cpu: (cpu.user + cpu.system) / 1e6,
      first: first === undefined ? undefined : first - begun,
      late: late[Math.floor(late.length * 0.99)], latest: late.at(-1),
      memory: Number(/VmHWM:\s*(\d+)/.exec(
        fs.readFileSync("/proc/self/status", "utf8"))[1]) / 1024,
    };
  }
}

const clock = isMainThread ? new Clock() : undefined;

function check(found, expected) {
  if (found !== expected) throw new Error(`${found} instead of ${expected}`);
}

// ---- a table ---------------------------------------------------------------------

async function eachBatch(stream, use) {
  let rows = 0;
  for await (const batch of stream) {
    clock.first();
    rows += batch.numRows;
    use(batch);
  }
  return rows;
}

async function readPool(options, use) {
  const pool = new (uvarrow().Pool)(options);
  await pool.query("SELECT 1").readAll();
  clock.begin();
  check(await eachBatch(pool.query(SQL), use), places.rows);
  clock.end();
}

const sqlite = () => ({ driver: places.driver, uri: places.sqlite });
const duckdb = () => ({
  driver: places.libduckdb, entrypoint: "duckdb_adbc_init",
  options: { path: places.duckdb },
});

/** Rows of an address of beside.node, which `step` reads a batch of. */
async function readBeside(step) {
  const { query } = beside();
  clock.begin();
  const address = query(places.driver, "AdbcDriverSqliteInit", "uri",
    places.sqlite, SQL);
  let rows = 0;
  for (let read = await step(address); read >= 0; read = await step(address)) {
    clock.first();
    rows += read;
  }
  check(rows, places.rows);
  clock.end();
}

/** Rows of a statement, objects of JavaScript */
function eachRow(statement) {
  let rows = 0;
  clock.begin();
  for (const row of statement.iterate()) {
    clock.first();
    rows += row === null ? 0 : 1;
  }
  check(rows, places.rows);
  clock.end();
}

const better = () => new (require(`${places.modules}/better-sqlite3`))(
  places.sqlite, { readonly: true });
const ofNode = () => new (require("node:sqlite").DatabaseSync)(
  places.sqlite, { readOnly: true });

/** A worker with the synchronous driver, which posts chunks of rows. */
async function readWorker() {
  const worker = new Worker(__filename, { workerData: ["worker_rows", text] });
  await once(worker, "message");
  clock.begin();
  worker.postMessage("go");
  let rows = 0;
  for (;;) {
    const [chunk] = await once(worker, "message");
    clock.first();
    if (chunk.length === 0) break;
    rows += chunk.length;
  }
  check(rows, places.rows);
  clock.end();
  await worker.terminate();
}

async function worker_rows() {
  const database = better();
  parentPort.postMessage("ready");
  await once(parentPort, "message");
  let chunk = [];
  for (const row of database.prepare(SQL).iterate()) {
    chunk.push(row);
    if (chunk.length < CHUNK) continue;
    parentPort.postMessage(chunk);
    chunk = [];
  }
  if (chunk.length > 0) parentPort.postMessage(chunk);
  parentPort.postMessage([]);
}

async function readDuckdb() {
  const { DuckDBInstance } = require(`${places.modules}/@duckdb/node-api`);
  const instance = await DuckDBInstance.create(places.duckdb,
    { access_mode: "READ_ONLY" });
  const connection = await instance.connect();
  await connection.run("SELECT 1");
  clock.begin();
  const result = await connection.stream(SQL);
  let rows = 0;
  for (let chunk = await result.fetchChunk(); chunk !== null &&
    chunk.rowCount > 0; chunk = await result.fetchChunk()) {
    clock.first();
    rows += chunk.rowCount;
  }
  check(rows, places.rows);
  clock.end();
}

/** Makes the database of DuckDB; not measured. */
async function makeDuckdb() {
  const { DuckDBInstance } = require(`${places.modules}/@duckdb/node-api`);
  const connection = await (await DuckDBInstance.create(places.duckdb)).connect();
  await connection.run(`CREATE TABLE flights AS
    FROM read_csv('${places.csv}', nullstr = 'NA')`);
  connection.closeSync();
  clock.begin();
  clock.end();
}

// ---- batches of 8 KB -------------------------------------------------------------

const numbers = (rows = 1024, batches = places.batches, ms = 0) =>
  require(places.numbers).open(batches, rows, ms, -1);

const stream = (...how) => uvarrow().fromPointer(numbers(...how));

async function countBatches(use) {
  const source = stream();
  clock.begin();
  check(await eachBatch(source, use), places.batches * 1024);
  clock.end();
}

async function countBeside(step) {
  const address = numbers();
  clock.begin();
  let rows = 0;
  for (let read = await step(address); read >= 0; read = await step(address))
    rows += read;
  check(rows, places.batches * 1024);
  clock.end();
}

/** On the loop, without a promise: the source alone */
function countSource() {
  const address = numbers();
  const { next } = beside();
  clock.begin();
  let rows = 0;
  for (let read = next(address); read >= 0; read = next(address)) rows += read;
  check(rows, places.batches * 1024);
  clock.end();
}

/** A worker that reads, and posts each batch as 8 KB that are transferred */
async function countWorker() {
  const worker = new Worker(__filename, { workerData: ["worker_batches", text] });
  await once(worker, "message");
  let rows = 0;
  clock.begin();
  await new Promise((resolve) => {
    worker.on("message", (buffer) => {
      if (buffer === null) resolve();
      else rows += buffer.byteLength / 8;
    });
    worker.postMessage("go");
  });
  check(rows, places.batches * 1024);
  clock.end();
  await worker.terminate();
}

async function worker_batches() {
  const address = numbers();
  const { next } = beside();
  parentPort.postMessage("ready");
  await once(parentPort, "message");
  for (let read = next(address); read >= 0; read = next(address)) {
    const buffer = new ArrayBuffer(read * 8);
    parentPort.postMessage(buffer, [buffer]);
  }
  parentPort.postMessage(null);
}

// ---- fs beside four reads that block ----------------------------------------------

async function readFileBeside(begin) {
  const reads = Array.from({ length: 4 }, begin);
  await new Promise((resolve) => setTimeout(resolve, 50)); // they are under way
  clock.begin();
  await fs.promises.readFile(__filename);
  clock.first();
  await Promise.all(reads);
  clock.end();
}

const BLOCKED = [1, 1, 500]; // rows, batches, ms of each

// ---- an answer of HTTP -----------------------------------------------------------

/** Answers one request by `answer`, and measures it. */
async function serve(answer, expected) {
  let done;
  const finished = new Promise((resolve) => { done = resolve; });
  const server = http.createServer((request, response) => {
    clock.begin();
    finished.then(() => clock.end());
    response.on("close", done);
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = spawn(process.execPath, ["-e", `
    require("http").get("http://127.0.0.1:${server.address().port}", (answer) => {
      let bytes = 0;
      answer.on("data", (chunk) => { bytes += chunk.length; });
      answer.on("end", () => console.log(bytes));
    });`], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  client.stdout.on("data", (chunk) => { output += chunk; });
  await Promise.all([finished, once(client, "close")]);
  if (!(Number(output) > expected)) throw new Error(`${output} bytes were sent`);
  server.close();
}

const LARGE = () => [100000, places.large]; // batches of 800 KB
const sendNumbers = (send) =>
  serve((response) => send(stream(...LARGE()), response), places.large * 800000);

/** Copies each batch, as by an addon that gives Buffers of its own */
async function sendCopies(source, response) {
  for await (const batch of source) {
    if (!response.write(batch.toIPC())) await once(response, "drain");
    batch.close();
  }
  response.end();
}

/** Rows of a statement as JSON lines, with back-pressure */
async function sendRows(statement, response) {
  let lines = "";
  for (const row of statement.iterate()) {
    lines += `${JSON.stringify(row)}\n`;
    if (lines.length < 65536) continue;
    if (!response.write(lines)) await once(response, "drain");
    lines = "";
  }
  response.end(lines);
}

const JSON_BYTES = () => places.rows * 200;

// ---- the ways --------------------------------------------------------------------

const WAYS = {
  sqlite_uvarrow: () => readPool(sqlite(), () => {}),
  sqlite_closed: () => readPool(sqlite(), (batch) => batch.close()),
  sqlite_driver: () => readBeside(beside().next),
  sqlite_async_work: () => readBeside(beside().nextLater),
  sqlite_worker: readWorker,
  sqlite_better: () => eachRow(better().prepare(SQL)),
  sqlite_node: () => eachRow(ofNode().prepare(SQL)),
  duckdb_uvarrow: () => readPool(duckdb(), () => {}),
  duckdb_closed: () => readPool(duckdb(), (batch) => batch.close()),
  duckdb_node: readDuckdb,
  duckdb_make: makeDuckdb,
  batches_source: countSource,
  batches_uvarrow: () => countBatches(() => {}),
  batches_data: () => countBatches((batch) => batch.data),
  batches_async_work: () => countBeside(beside().nextLater),
  batches_worker: countWorker,
  blocked_uvarrow: () => readFileBeside(() => stream(...BLOCKED).readAll()),
  blocked_async_work: () => readFileBeside(() =>
    beside().nextLater(numbers(...BLOCKED))),
  http_pipe: () => sendNumbers((source, response) => source.pipeTo(response)),
  http_readable: () => sendNumbers((source, response) =>
    pipeline(source.toIPC(), response)),
  http_web: () => sendNumbers((source, response) =>
    pipeline(source.toWeb(), response)),
  http_copied: () => sendNumbers(sendCopies),
  json_uvarrow: () => serve((response) => new (uvarrow().Pool)(sqlite())
    .query(SQL).pipeTo(response, { format: "json" }), JSON_BYTES()),
  json_better: () => serve((response) =>
    sendRows(better().prepare(SQL), response), JSON_BYTES()),
  json_node: () => serve((response) =>
    sendRows(ofNode().prepare(SQL), response), JSON_BYTES()),
};

async function main() {
  if (way === "worker_rows") return worker_rows();
  if (way === "worker_batches") return worker_batches();
  await WAYS[way]();
  console.log(JSON.stringify(await clock.figures()));
  process.exit();
}

main();
