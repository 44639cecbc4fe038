// SPDX-License-Identifier: Apache-2.0
// The package: asynchronous iterators over Arrow batches.
"use strict";
const { Batch } = require("./lib/batch.js");
const { UvarrowError } = require("./lib/error.js");
const { native } = require("./lib/native.js");
const { Pool, Session } = require("./lib/pool.js");
const { concat, file, fromBatches, fromIPC, fromPointer, merge } =
  require("./lib/source.js");
const { Stream } = require("./lib/stream.js");

const stats = () => native.stats();

module.exports = {
  Batch,
  Pool,
  Session,
  Stream,
  UvarrowError,
  concat,
  file,
  fromBatches,
  fromIPC,
  fromPointer,
  merge,
  stats,
};
