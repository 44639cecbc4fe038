// SPDX-License-Identifier: Apache-2.0
// Databases: a pool of connections by any ADBC driver, and sessions.
"use strict";
const { Batch } = require("./batch.js");
const { choice, count, flag, options, pairs, refuse, text } =
  require("./error.js");
const { given, native } = require("./native.js");
const { fromBatches, fromIPC, windowOf } = require("./source.js");
const { Stream, consumeStream, handleOfStream, newStream } =
  require("./stream.js");

const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
const MODES = new Map(["create", "append", "replace"].map((mode) =>
  [mode, `adbc.ingest.mode.${mode}`]));
MODES.set("createAppend", "adbc.ingest.mode.create_append");

/** A value as the addon takes it. */
function packValue(name, value) {
  switch (typeof value) {
  case "boolean":
  case "number":
  case "bigint":
    return value;
  case "string":
    return text(name, value, false);
  case "undefined":
    return null;
  default:
    if (value === null || value instanceof Uint8Array) return value;
    if (value instanceof Date) return value.toISOString();
    return refuse(name, "null, a boolean, a number, a bigint, a string, " +
      "a Date or a Uint8Array");
  }
}

/** [list of names and values, stream]: one of them is null */
function packParams(params) {
  if (params === undefined || params === null) return [null, null];
  if (params instanceof Stream) return [null, params];
  if (params instanceof Batch) return [null, fromBatches([params])];
  if (Array.isArray(params)) {
    return [params.flatMap((value, i) =>
      [null, packValue(`parameter ${i + 1}`, value)]), null];
  }
  if (typeof params !== "object") {
    refuse("params", "an array, an object, a Batch or a Stream");
  }
  return [Object.entries(params).flatMap(([name, value]) =>
    [text("the name of a parameter", name, false),
     packValue(`parameter ${name}`, value)]), null];
}

/** Makes the stream of a query, which reads `part` if there is one. */
function querying(handle, how, part) {
  const stream = newStream(handle, how);
  return part === null ? stream : consumeStream(stream, part);
}

class Queries {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  #query(sql, params, how, changes) {
    const { busy, byName, options: statement } = options(how);
    const [values, part] = packParams(params);
    return querying(given(native.query(this.#handle, text("sql", sql, false),
      values, part && handleOfStream(part), pairs("options", statement),
      ...windowOf(options(how)), count("busy", busy), changes,
      flag("byName", byName))), how, part);
  }

  query(sql, params, how) {
    return this.#query(sql, params, how, false);
  }

  /** Gives how many rows were changed; -1: the driver does not report it. */
  async execute(sql, params, how) {
    return ended(this.#query(sql, params, how, true));
  }

  async ingest(table, rows, how) {
    const { mode, busy, options: statement } = options(how);
    const part = await rowsOf(rows);
    const kind = ["adbc.ingest.mode", choice("mode", mode, MODES, "create")];
    return ended(querying(given(native.ingest(this.#handle,
      text("table", table, false), null, handleOfStream(part),
      [...kind, ...pairs("options", statement) ?? []],
      ...windowOf(options(how)), count("busy", busy))), how, part));
  }

  objects(how) {
    const { depth, catalog, schema, table, column } = options(how);
    return newStream(given(native.objects(this.#handle, count("depth", depth),
      text("catalog", catalog), text("schema", schema), text("table", table),
      text("column", column))), how);
  }

  stats() {
    return given(native.poolStats(this.#handle));
  }

  async close() {
    given(native.closePool(this.#handle));
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }

  static {
    Queries.handleOf = (queries) => queries.#handle;
  }
}
const { handleOf } = Queries;
delete Queries.handleOf;

/** Reads a stream to its end, and gives how many rows the query has changed. */
async function ended(stream) {
  let changed = -1;
  await stream.metadata();
  changed = given(native.changed(handleOfStream(stream)));
  for await (const batch of stream) batch.close();
  return changed;
}

/** The rows of an ingest as a stream: of batches, or of bytes of Arrow IPC. */
async function rowsOf(rows) {
  if (rows instanceof Stream) return rows;
  if (rows instanceof Batch) return fromBatches([rows]);
  if (rows instanceof Uint8Array) return fromIPC([rows]);
  const iterator = rows?.[Symbol.asyncIterator]?.() ??
    rows?.[Symbol.iterator]?.();
  if (iterator === undefined || typeof rows === "string") {
    refuse("rows", "a Stream, batches, or bytes of Arrow IPC");
  }
  const first = await iterator.next();
  const all = restOf(iterator, first);
  return first.value instanceof Batch ? fromBatches(all) : fromIPC(all);
}

async function* restOf(iterator, first) {
  try {
    for (let step = first; !step.done; step = await iterator.next()) {
      yield step.value;
    }
  } finally {
    await iterator.return?.();
  }
}

class Session extends Queries {
  async commit() {
    await newStream(given(native.endTransaction(handleOf(this), true)))
      .readAll();
  }

  async rollback() {
    await newStream(given(native.endTransaction(handleOf(this), false)))
      .readAll();
  }
}

class Pool extends Queries {
  constructor(how) {
    const all = typeof how === "string" ? { uri: how } : options(how);
    const uri = text("uri", all.uri);
    super(given(native.openPool(text("driver", all.driver),
      text("entrypoint", all.entrypoint),
      [...uri === null ? [] : ["uri", uri],
       ...pairs("options", all.options) ?? []],
      pairs("connectionOptions", all.connectionOptions),
      count("connections", all.connections), count("wait", all.wait),
      count("idle", all.idle), count("lock", all.lock),
      flag("keepsSession", all.keepsSession))));
  }

  /** One connection for queries that belong together: a transaction, unless it
   * has autocommit. */
  session(how) {
    const { autocommit, options: connection } = options(how);
    return new Session(given(native.session(handleOf(this),
      flag("autocommit", autocommit), pairs("options", connection))));
  }
}

module.exports = { Pool, Session };
