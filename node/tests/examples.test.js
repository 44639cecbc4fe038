// SPDX-License-Identifier: Apache-2.0
// The programs in examples, with the packages that they use, each on a database of
// 5,000 rows.
"use strict";
const assert = require("node:assert/strict");
const { execFile, spawn } = require("node:child_process");
const { once } = require("node:events");
const fs = require("node:fs");
const http = require("node:http");
const os = require("node:os");
const path = require("node:path");
const readline = require("node:readline");
const { test } = require("node:test");
const { pathToFileURL } = require("node:url");
const { uvarrow } = require("./support/kit.js");
const { packages } = require("./support/packages.js");

const driver = process.env.UVA_TEST_DRIVER;
const noDriver = driver ? false : "the ADBC driver for SQLite is not here";
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "uvarrow-"));
const flights = `sqlite:${path.join(folder, "flights.db")}`;
// (in Bun an assignment does not reach the library)
if (driver) process.env.ADBC_DRIVER_PATH ??= path.dirname(driver);
process.env.FLIGHTS = flights;
const example = (name) => path.join(__dirname, "../examples", name);
const ROWS = 5000;
const SQL = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n
  WHERE i < ${ROWS - 1}) SELECT i AS flight,
  CASE i % 5 WHEN 0 THEN 'IAH' ELSE 'BOS' END AS dest FROM n`;

/** The rows of a query as bytes of Arrow IPC */
async function rowsOf(sql) {
  const chunks = [];
  const pool = new uvarrow.Pool("sqlite::memory:");
  for await (const chunk of pool.query(sql).toIPC()) chunks.push(chunk);
  return Buffer.concat(chunks);
}

async function countOf(bytes) {
  let rows = 0;
  for await (const batch of uvarrow.fromIPC(bytes)) rows += batch.numRows;
  return rows;
}

test.before(async () => {
  if (!noDriver) await new uvarrow.Pool(flights).ingest("flights",
    await rowsOf(SQL));
});
test.after(() => fs.rmSync(folder, { recursive: true }));

// ---- a server --------------------------------------------------------------------

/** What both servers do. */
async function checkServer(url) {
  const answer = await fetch(`${url}/flights?dest=IAH`);
  assert.equal(answer.headers.get("content-type"),
    "application/vnd.apache.arrow.stream");
  assert.equal(await countOf(answer.body), ROWS / 5);
  const taken = await fetch(`${url}/flights`, {
    method: "POST", duplex: "half",
    body: await rowsOf("SELECT 1 AS flight, 'AAA' AS dest"),
  });
  assert.deepEqual(await taken.json(), { rows: 1 });
  assert.equal(await countOf((await fetch(`${url}/flights?dest=AAA`)).body), 1);
  const refused = await fetch(`${url}/flights`,
    { method: "POST", body: "no Arrow", duplex: "half" });
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /Arrow IPC/);
  await new uvarrow.Pool(flights).execute("DELETE FROM flights WHERE dest = 'AAA'");
}

/** [status, signal] of a process that ends after a signal: Deno gives the signal
 * that it has sent. */
const byItself = (status, signal) =>
  process.versions.deno ? [null, signal] : [status, null];

const { skip: noExpress } = packages("express");

test("express.js", { skip: noDriver || noExpress }, async (t) => {
  const server = spawn(process.execPath, [example("express.js"), flights, "0"],
    { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => server.kill("SIGKILL"));
  const [line] = await once(readline.createInterface(server.stdout), "line");
  const url = /^listening on (http:\/\/127\.0\.0\.1:\d+)$/.exec(line)[1];
  await checkServer(url);
  const csv = await (await fetch(`${url}/flights?format=csv&dest=BOS`)).text();
  assert.deepEqual([csv.slice(0, 18), csv.split("\n").length],
    ["flight,dest\n1,BOS\n", ROWS * 4 / 5 + 2]);
  const unknown = await fetch(`${url}/flights?format=xml`);
  assert.equal(unknown.status, 400);
  assert.match(await unknown.text(), /format must be one of 'arrow'/);
  const ended = once(server, "exit");
  server.kill("SIGTERM");
  assert.deepEqual(await ended, byItself(0, "SIGTERM"));
});

const { "node-server": hono, skip: noHono } = packages("@hono/node-server");

test("route.mjs", { skip: noDriver || noHono }, async (t) => {
  const routes = await import(pathToFileURL(example("route.mjs")));
  const server = hono.serve({
    fetch: (request) => routes[request.method](request), port: 0,
    hostname: "127.0.0.1",
  });
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  await checkServer(url);
  const failed = await routes.GET(new Request(`${url}/flights`,
    { signal: AbortSignal.abort(new Error("enough")) }));
  assert.deepEqual([failed.status, await failed.json()],
    [400, { error: "enough" }]);
  // a client that leaves in the midst
  const before = uvarrow.stats().streamsOpen;
  const request = http.get(`${url}/flights`);
  const [response] = await once(request, "response");
  await once(response, "data");
  request.destroy();
  while (uvarrow.stats().streamsOpen > before)
    await new Promise(setImmediate);
});

const app = process.env.UVA_TEST_NEXT; // that of tests/next, built

test("route.mjs in an app of Next.js", { skip: noDriver ||
  (app ? false : "scripts/node_hosts next builds the app") }, async (t) => {
  const server = spawn(process.execPath, ["node_modules/next/dist/bin/next",
    "start", "--hostname", "127.0.0.1", "--port", "0"],
  { cwd: app, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => server.kill("SIGKILL"));
  let url;
  for await (const line of readline.createInterface(server.stdout)) {
    url = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  await checkServer(url);
  const streams = async () => (await fetch(`${url}/open`)).json();
  assert.equal(await streams(), 0);
  // a client that leaves in the midst of more rows than sockets keep
  await new uvarrow.Pool(flights).execute(`INSERT INTO flights ${
    SQL.replace(`${ROWS - 1}`, "1e6").replace(/'(IAH|BOS)'/g, "'ORD'")}`);
  const request = http.get(`${url}/flights?dest=ORD`);
  const [response] = await once(request, "response");
  await once(response, "data");
  response.pause();
  assert.equal(await streams(), 1);
  request.destroy();
  while (await streams() > 0);
  await new uvarrow.Pool(flights).execute("DELETE FROM flights WHERE dest = 'ORD'");
});

// ---- a command -------------------------------------------------------------------

/** [exit status, output, errors] of the command */
const query = (...args) => new Promise((resolve) => {
  execFile(process.execPath, [example("query.js"), ...args],
    (error, out, errors) => resolve([error?.code ?? 0, out, errors]));
});

test("query.js", { skip: noDriver }, async () => {
  assert.deepEqual(await query(flights,
    "SELECT * FROM flights WHERE flight < ? AND dest = ?", "6", "IAH"),
  [0, "flight,dest\n0,IAH\n5,IAH\n", ""]);
  assert.deepEqual(await query("--format", "json", flights,
    "SELECT max(flight) AS f FROM flights"), [0, '{"f":4999}\n', ""]);
  const [status, output, errors] = await query(flights, "SELEC");
  assert.deepEqual([status, output], [1, ""]);
  assert.match(errors, /^query: .*SELEC/);
});

test("query.js --table", {
  skip: noDriver || packages("@uwdata/flechette").skip,
}, async () => {
  const [status, output] = await query("--table", flights,
    "SELECT flight, dest FROM flights");
  assert.equal(status, 0);
  assert.match(output, /│ +19 +│ +19 +│ ['"]?BOS['"]? +│/);
  assert.doesNotMatch(output, /│ +20 /);
});

test("query.js ends with its reader, and with Ctrl-C", { skip: noDriver },
  async () => {
    const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 " +
      "FROM n) SELECT i FROM n";
    for (const end of ["reader", "SIGINT"]) {
      const command = spawn(process.execPath,
        [example("query.js"), flights, endless],
        { stdio: ["ignore", "pipe", "pipe"] });
      let errors = "";
      command.stderr.on("data", (chunk) => { errors += chunk; });
      await once(command.stdout, "data");
      const ended = once(command, "close");
      if (end === "reader") command.stdout.destroy();
      else command.kill(end);
      command.stdout.resume();
      assert.deepEqual([...await ended, errors], end === "reader" ?
        [0, null, ""] : [...byItself(1, end), "query: interrupted\n"]);
    }
  });
