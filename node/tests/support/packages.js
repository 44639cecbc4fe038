// SPDX-License-Identifier: Apache-2.0
// The packages of npm that tests use, of tests/packages/package-lock.json.
"use strict";
const { createRequire } = require("node:module");
const path = require("node:path");

const folder = path.join(__dirname, "../packages");
const find = createRequire(path.join(folder, "package.json"));

/** A package, by its last name, or `skip`, which says why it is not here. */
function packages(name) {
  try {
    return { [path.basename(name)]: find(name), skip: false };
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    return { skip: `${name} is not here: npm ci --prefix node/tests/packages` };
  }
}

module.exports = { packages };
