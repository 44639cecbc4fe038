// SPDX-License-Identifier: Apache-2.0
// Finds the binary: npm installs a package of it for each platform.
"use strict";
const { createRequire } = require("node:module");

// A bundler follows calls of require() with a literal, and not those of `find`.
const find = createRequire(__filename);

function load() {
  const given = process.env.UVARROW_ADDON; // for tests
  if (given !== undefined) return find(given);
  const failed = [];
  // npm until 10.4 installs those for both libraries of C: the other cannot load.
  if (process.platform === "linux" && process.arch === "x64") {
    try {
      return require("@uvarrow/linux-x64-gnu");
    } catch (error) {
      failed.push(error);
    }
    try {
      return require("@uvarrow/linux-x64-musl");
    } catch (error) {
      failed.push(error);
    }
  } else if (process.platform === "linux" && process.arch === "arm64") {
    try {
      return require("@uvarrow/linux-arm64-gnu");
    } catch (error) {
      failed.push(error);
    }
    try {
      return require("@uvarrow/linux-arm64-musl");
    } catch (error) {
      failed.push(error);
    }
  }
  try {
    return find("../uvarrow.node"); // in the repository
  } catch (error) {
    failed.push(error);
  }
  throw notFound(failed);
}

function notFound(failed) {
  const platform = `${process.platform} ${process.arch}`;
  const isThere = failed.find(({ code }) => code !== "MODULE_NOT_FOUND");
  if (isThere !== undefined) {
    return new Error(`the binary of uvarrow cannot be loaded on ${platform}: ` +
      isThere.message, { cause: isThere });
  }
  return new Error(failed.length === 1 ?
    `uvarrow has no binary for ${platform}: it is for Linux on x64 and arm64` :
    `uvarrow has not found its binary for ${platform}, which is an optional ` +
    "dependency: was it installed with --omit=optional, or for another " +
    "platform?", { cause: failed[0] });
}

module.exports = load();
