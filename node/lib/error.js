// SPDX-License-Identifier: Apache-2.0
// Errors of streams, and arguments that do not fit.
"use strict";

/** A failure: `code` is the name of an errno, `errno` its negative number, as in
 * errors of Node.js; `metadata` is what a driver has told. */
class UvarrowError extends Error {
  constructor(code, errno, message, metadata = {}) {
    super(message);
    this.code = code;
    this.errno = errno;
    this.metadata = metadata;
  }
}
Object.defineProperty(UvarrowError.prototype, "name", {
  value: "UvarrowError", configurable: true, writable: true,
});

/** Throws a TypeError that names the argument. */
function refuse(name, expected) {
  const error = new TypeError(`${name} must be ${expected}`);
  error.code = "ERR_INVALID_ARG_TYPE";
  throw error;
}

/** A whole number from 0 on; `fallback` where there is none. */
function count(name, value, fallback = 0) {
  if (value === undefined || value === null) return fallback;
  if (typeof value !== "number" || !(value >= 0)) {
    refuse(name, "a number from 0 on");
  }
  return Math.min(Math.ceil(value), Number.MAX_SAFE_INTEGER);
}

/** A text without NUL, which C would cut there; null where there is none. */
function text(name, value, isOptional = true) {
  if (isOptional && (value === undefined || value === null)) return null;
  if (typeof value !== "string" || value.includes("\0")) {
    refuse(name, "a string without NUL");
  }
  return value;
}

function flag(name, value, fallback = false) {
  if (value === undefined) return fallback;
  if (typeof value !== "boolean") refuse(name, "a boolean");
  return value;
}

function callable(name, value) {
  if (typeof value !== "function") refuse(name, "a function");
  return value;
}

/** One of the keys of a Map, whose value it gives. */
function choice(name, value, choices, fallback) {
  if (value === undefined) return choices.get(fallback);
  if (!choices.has(value)) {
    refuse(name, `one of ${[...choices.keys()].map((key) => `'${key}'`)
      .join(", ")}`);
  }
  return choices.get(value);
}

/** An object of strings as [key, value...]; null where there is none. */
function pairs(name, value) {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") refuse(name, "an object of strings");
  return Object.entries(value).flatMap(([key, item]) => [
    text(`a key of ${name}`, key, false),
    text(`${name}.${key}`, item, false),
  ]);
}

/** Options: an object, or none. */
function options(value) {
  if (value === undefined) return {};
  if (value === null || typeof value !== "object") {
    refuse("options", "an object");
  }
  return value;
}

module.exports = {
  UvarrowError, callable, choice, count, flag, options, pairs, refuse, text,
};
