// SPDX-License-Identifier: Apache-2.0
// Formats of bytes, as the addon takes them.
"use strict";
const { choice, flag, options, refuse, text } = require("./error.js");

const FORMATS = new Map([["arrow", 0], ["arrow-file", 1], ["csv", 2],
                         ["json", 3]]);
const COMPRESSIONS = new Map([["none", 0], ["lz4", 1], ["zstd", 2]]);

function delimiterOf(value) {
  if (value === undefined) return 0;
  if (typeof value !== "string" || value.length !== 1 ||
      value.charCodeAt(0) > 127) {
    refuse("delimiter", "one character of ASCII");
  }
  return value.charCodeAt(0);
}

/** [format, compression, delimiter, has names, CR LF, text of nulls] */
function encoding(format, how) {
  const { compression, delimiter, header, crlf, nullText } = options(how);
  return [
    choice("format", format, FORMATS, "arrow"),
    choice("compression", compression, COMPRESSIONS, "none"),
    delimiterOf(delimiter), flag("header", header, true), flag("crlf", crlf),
    text("nullText", nullText),
  ];
}

module.exports = { encoding };
