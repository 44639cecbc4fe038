// SPDX-License-Identifier: Apache-2.0
// `data` of arrays that have more than a validity and values: dictionaries, views
// and unions. Each way of making the buffers gives the same.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { unusual } = require("./support/fixtures.js");
const { uvarrow } = require("./support/kit.js");

const as = (Type, { buffer, byteLength, byteOffset }) =>
  [...new Type(buffer, byteOffset, byteLength / Type.BYTES_PER_ELEMENT)];
const text = (bytes) => Buffer.from(bytes).toString();

async function columns(copyBelow) {
  const [batch] = await uvarrow.fromIPC(unusual, { copyBelow }).readAll();
  return Object.fromEntries(batch.data.children.map((child) =>
    [child.field.name, child]));
}

/** The texts of an array of format "u". */
function texts({ buffers: [, offsets, bytes], length, offset }) {
  const ends = as(Int32Array, offsets).slice(offset, offset + length + 1);
  return ends.slice(1).map((end, i) => text(bytes.subarray(ends[i], end)));
}

/** The texts of an array of format "vu": 16 bytes each, in which a short one is,
 * or where a long one lies. */
function viewed({ buffers: [validity, views, ...data], length }) {
  return Array.from({ length }, (_, i) => {
    if ((validity[i >> 3] >> (i & 7) & 1) === 0) return null;
    const [size, , number, offset] = as(Int32Array, views).slice(4 * i, 4 * i + 4);
    return text(size <= 12 ? views.subarray(16 * i + 4, 16 * i + 4 + size)
      : data[number].subarray(offset, offset + size));
  });
}

for (const [how, copyBelow] of [["copied", Infinity], ["borrowed", 0]]) {
  test(`a dictionary is beside its indices, ${how}`, async () => {
    const { d } = await columns(copyBelow);
    assert.equal(d.field.format, "c");
    assert.equal(d.field.dictionary.format, "u");
    assert.equal(d.dictionary.field, d.field.dictionary);
    assert.deepEqual([as(Int8Array, d.buffers[1])[0], d.nullCount], [1, 1]);
    assert.equal(d.buffers[0][0] & 0b1111, 0b1011);
    assert.deepEqual(texts(d.dictionary), ["no", "yes"]);
    assert.deepEqual(d.children, []);
  });

  test(`views have as many buffers as they need, ${how}`, async () => {
    const { v } = await columns(copyBelow);
    assert.equal(v.field.format, "vu");
    assert.deepEqual(viewed(v), ["short", null, "longer than twelve bytes",
      "and another long one"]);
  });

  test(`unions have types, and no validity, ${how}`, async () => {
    const { du, su } = await columns(copyBelow);
    assert.deepEqual([du.field.format, su.field.format], ["+ud:0,1", "+us:0,1"]);
    for (const union of [du, su])
      assert.deepEqual(as(Int8Array, union.buffers[0]), [0, 1, 0, 1]);
    assert.deepEqual(as(Int32Array, du.buffers[1]), [0, 0, 1, 1]);
    assert.equal(su.buffers.length, 1);
    assert.deepEqual([as(BigInt64Array, du.children[0].buffers[1]),
      texts(du.children[1])], [[5n, 6n], ["a", "b"]]);
    assert.deepEqual(texts(su.children[1]), ["", "a", "", "b"]);
  });
}
