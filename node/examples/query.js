#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// A command that prints the rows of a query; it ends with Ctrl-C, and when its
// reader has enough. With --table the first rows are shown by flechette.
//
//     $ npm install uvarrow @uwdata/flechette
//     $ node query.js sqlite:flights.db 'SELECT * FROM flights WHERE dest = ?' IAH |
//         head -2
//     $ node query.js --table sqlite:flights.db 'SELECT carrier, origin FROM flights'
"use strict";
const { parseArgs } = require("node:util");
const { Pool } = require("uvarrow");

async function showTable(rows) {
  const { tableFromBatches } = require("uvarrow/flechette");
  const batches = await rows.limit(20).readAll();
  console.table(batches.length > 0 ? tableFromBatches(batches).toArray() : []);
}

async function main({ format, table }, [uri, sql, ...params]) {
  const controller = new AbortController();
  process.once("SIGINT", () => controller.abort(new Error("interrupted")));
  await using(new Pool(uri), async (pool) => {
    const rows = pool.query(sql, params, { signal: controller.signal });
    if (table) await showTable(rows);
    else await rows.pipeTo(process.stdout, { format, end: false });
  });
}

/** As `await using` of newer versions */
async function using(object, body) {
  try {
    return await body(object);
  } finally {
    await object.close();
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    format: { type: "string", default: "csv" },
    table: { type: "boolean", default: false },
  },
});
main(values, positionals).catch((error) => {
  if (error.code === "EPIPE") return; // as for `head`
  console.error(`query: ${error.message}`);
  process.exitCode = 1;
});
