// SPDX-License-Identifier: Apache-2.0
// A server by express: rows out, as Arrow IPC, CSV or JSON lines, and in. A slow
// client holds back the database, and one that leaves ends its query.
//
//     $ npm install uvarrow express
//     $ node express.js sqlite:flights.db 8000 &
//     listening on http://127.0.0.1:8000
//     $ curl 'http://127.0.0.1:8000/flights?dest=IAH&format=csv'
//     $ curl --data-binary @more.arrow http://127.0.0.1:8000/flights
//     {"rows":1000}
"use strict";
const express = require("express");
const { Pool } = require("uvarrow");

const TYPES = {
  arrow: "application/vnd.apache.arrow.stream",
  csv: "text/csv; charset=utf-8",
  json: "application/x-ndjson",
};
const [, , uri, port = "8000"] = process.argv;
const pool = new Pool(uri);
const app = express();

app.get("/flights", async (request, response) => {
  const { dest = null, format = "arrow" } = request.query;
  response.type(TYPES[format] ?? "text/plain");
  await pool.query("SELECT * FROM flights WHERE dest = ?1 OR ?1 IS NULL",
    [dest]).pipeTo(response, { format });
});

app.post("/flights", async (request, response) => {
  const rows = await pool.ingest("flights", request, { mode: "append" });
  response.json({ rows });
});

// What has failed before its first byte can still be told to the client; the
// answer is cut off otherwise.
app.use((error, request, response, next) => {
  if (response.headersSent) next(error);
  else response.status(400).type("text/plain").send(`${error.message}\n`);
});

const server = app.listen(Number(port), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});

process.once("SIGTERM", () => {
  server.close(() => pool.close()); // answers that have begun are finished
  server.closeIdleConnections();
});
