// SPDX-License-Identifier: Apache-2.0
// A batch: rows of columns, in the memory of the library.
"use strict";
const { encoding } = require("./encode.js");
const { UvarrowError, refuse } = require("./error.js");
const { BYTES, ORDINAL, ROWS, given, native, numbers } =
  require("./native.js");

// Smaller buffers are copied together: an ArrayBuffer of its own costs more.
const COPY_BELOW = 8192;

const DISPOSE = Symbol.dispose ?? Symbol.for("Symbol.dispose");

const TOKEN = Symbol("uvarrow");

/** The indices of columns, which are given by name or index. */
function indicesOf(columns, fields) {
  if (!Array.isArray(columns)) refuse("columns", "an array of names or indices");
  const out = columns.map((column) => {
    const at = typeof column === "number" ? column
      : fields.findIndex(({ name }) => name === column);
    if (fields[at] !== undefined) return at;
    throw new UvarrowError("EINVAL", -22,
      `the batch has no column '${String(column)}'`);
  });
  out.forEach((at, i) => {
    if (out.indexOf(at) === i) return;
    throw new UvarrowError("EINVAL", -22,
      `column '${fields[at].name}' is selected twice`);
  });
  return out;
}

/** A bit for each row; see filter(). */
function bitsOf(mask, rows) {
  const bits = new Uint8Array((rows + 7) >> 3);
  if (typeof mask === "boolean") return bits.fill(mask ? 255 : 0);
  if (!(Array.isArray(mask) || ArrayBuffer.isView(mask)) ||
      mask.length !== rows) {
    refuse("mask", "a boolean, or an array with a value for each of the " +
      `${rows} rows`);
  }
  for (let row = 0; row < rows; row++) {
    if (mask[row]) bits[row >> 3] |= 1 << (row & 7);
  }
  return bits;
}

let handleOfBatch; // for the addon

class Batch {
  #handle;
  // { schema, copyBelow, selections }, shared by the batches of a stream
  #known;
  #data;
  #borrowed = []; // ArrayBuffers on the memory of the batch
  #numRows;
  #ordinal;
  #byteLength;

  /** `numbers` describes the batch that was given last. */
  constructor(token, handle, known) {
    if (token !== TOKEN) refuse("a Batch", "taken from a Stream");
    this.#handle = handle;
    this.#known = known;
    this.#numRows = numbers[ROWS];
    this.#ordinal = numbers[ORDINAL];
    this.#byteLength = numbers[BYTES];
  }

  get numRows() {
    return this.#numRows;
  }

  get ordinal() {
    return this.#ordinal;
  }

  get byteLength() {
    return this.#byteLength;
  }

  get schema() {
    return this.#known.schema ??= given(native.batchSchema(this.#handle));
  }

  get data() {
    return this.#data ??= this.#makeData();
  }

  #makeData() {
    const [layout, copies, ...borrowed] = given(native.batchData(this.#handle,
      this.#known.copyBelow));
    const sizes = new Float64Array(layout);
    let at = 0;
    const view = () => {
      const place = sizes[at++];
      const size = sizes[at++];
      return place >= 0 ? new Uint8Array(copies, place, size)
        : new Uint8Array(borrowed[-1 - place], 0, size);
    };
    const node = (field) => {
      const out = {
        field, length: sizes[at++], nullCount: sizes[at++],
        offset: sizes[at++], buffers: [], children: [],
      };
      for (let left = sizes[at++]; left > 0; left--) out.buffers.push(view());
      for (const child of field.children) out.children.push(node(child));
      if (field.dictionary) out.dictionary = node(field.dictionary);
      return out;
    };
    this.#borrowed = borrowed;
    return node(this.schema);
  }

  /** A batch of these columns, in this order, on the same memory. */
  select(columns) {
    const indices = indicesOf(columns, this.schema.children);
    const handle = given(native.batchColumns(this.#handle, indices,
      this.#ordinal));
    return new Batch(TOKEN, handle, this.#selection(indices.join()));
  }

  /** What the batches of a stream that have the same columns share */
  #selection(key) {
    const { copyBelow, selections = new Map() } = this.#known;
    this.#known.selections = selections;
    if (!selections.has(key)) {
      selections.set(key, { schema: undefined, copyBelow });
    }
    return selections.get(key);
  }

  /** A batch of the rows for which the mask has a truthy value: an array, or
   * one boolean for all of them. */
  filter(mask) {
    return new Batch(TOKEN, given(native.batchRows(this.#handle,
      bitsOf(mask, this.#numRows), this.#ordinal)), this.#known);
  }

  toIPC(options) {
    return given(native.batchEncode(this.#handle,
      ...encoding("arrow", options)));
  }

  close() {
    for (const buffer of this.#borrowed.splice(0)) {
      if (buffer.byteLength > 0) native.detach(buffer);
    }
    this.#data = undefined;
    native.batchClose(this.#handle);
  }

  [DISPOSE]() {
    this.close();
  }

  static {
    handleOfBatch = (batch) => batch.#handle;
  }
}

const newBatch = (handle, known) => new Batch(TOKEN, handle, known);

module.exports = { Batch, COPY_BELOW, handleOfBatch, newBatch };
