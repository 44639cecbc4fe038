// SPDX-License-Identifier: Apache-2.0
// A batch: rows of columns, in the memory of the library.
"use strict";
const { encoding } = require("./encode.js");
const { refuse } = require("./error.js");
const { BYTES, ORDINAL, ROWS, given, native, numbers } =
  require("./native.js");

// Smaller buffers are copied together: an ArrayBuffer of its own costs more.
const COPY_BELOW = 8192;

const DISPOSE = Symbol.dispose ?? Symbol.for("Symbol.dispose");

const TOKEN = Symbol("uvarrow");

let handleOfBatch; // for the addon

class Batch {
  #handle;
  #known; // { schema, copyBelow }, shared by the batches of a stream
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
