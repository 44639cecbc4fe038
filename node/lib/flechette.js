// SPDX-License-Identifier: Apache-2.0
// Columns of the package flechette on the buffers of batches. Its columns have no
// offset, so that of an array is taken off: views begin later, and bitmaps are
// copied where they would begin within a byte.
"use strict";
const { Batch } = require("./batch.js");
const { UvarrowError, options, refuse } = require("./error.js");

const flechette = load();
const { Column, IntervalUnit, Table, TimeUnit, Type, UnionMode, batchType } =
  flechette;

function load() {
  try {
    return require("@uwdata/flechette");
  } catch (error) {
    if (error.code !== "MODULE_NOT_FOUND") throw error;
    throw Object.assign(new Error("uvarrow/flechette needs the package " +
      "@uwdata/flechette, which is not installed with uvarrow",
    { cause: error }), { code: error.code });
  }
}

// ---- types -------------------------------------------------------------------

const ORDERED = 1, NULLABLE = 2, KEYS_SORTED = 4; // flags of the C data interface

const UNITS = { s: TimeUnit.SECOND, m: TimeUnit.MILLISECOND,
                u: TimeUnit.MICROSECOND, n: TimeUnit.NANOSECOND };

const TYPES = {
  n: flechette.nullType, b: flechette.bool,
  c: flechette.int8, C: flechette.uint8, s: flechette.int16,
  S: flechette.uint16, i: flechette.int32, I: flechette.uint32,
  l: flechette.int64, L: flechette.uint64,
  e: flechette.float16, f: flechette.float32, g: flechette.float64,
  z: flechette.binary, Z: flechette.largeBinary, vz: flechette.binaryView,
  u: flechette.utf8, U: flechette.largeUtf8, vu: flechette.utf8View,
  tdD: flechette.dateDay, tdm: flechette.dateMillisecond,
  tiM: () => flechette.interval(IntervalUnit.YEAR_MONTH),
  tiD: () => flechette.interval(IntervalUnit.DAY_TIME),
  tin: () => flechette.interval(IntervalUnit.MONTH_DAY_NANO),
  "+l": flechette.list, "+L": flechette.largeList,
  "+vl": flechette.listView, "+vL": flechette.largeListView,
  "+s": (...fields) => ({ ...flechette.struct([]), children: fields }),
  "+r": flechette.runEndEncoded,
};
for (const [letter, unit] of Object.entries(UNITS)) {
  TYPES[`tt${letter}`] = () => flechette.time(unit);
  TYPES[`tD${letter}`] = () => flechette.duration(unit);
}

function decimalOf(text) {
  const [precision, scale, bits = 128] = text.split(",").map(Number);
  if (![32, 64, 128, 256].includes(bits) || (scale < 0 && bits > 32)) {
    return undefined; // it computes a power of 10n with the scale
  }
  return flechette.decimal(precision, scale, bits);
}

function unionOf(mode, text, fields) {
  const ids = text === "" ? [] : text.split(",").map(Number);
  return flechette.union(mode, fields, ids);
}

/** The type of a format of two parts, such as "w:16" */
function longType({ format, flags }, fields) {
  const [kind, text] = [format.slice(0, format.indexOf(":")),
    format.slice(format.indexOf(":") + 1)];
  switch (kind) {
  case "d": return decimalOf(text);
  case "w": return flechette.fixedSizeBinary(Number(text));
  case "+w": return flechette.fixedSizeList(fields[0], Number(text));
  case "+ud": return unionOf(UnionMode.Dense, text, fields);
  case "+us": return unionOf(UnionMode.Sparse, text, fields);
  default:
    return /^ts[smun]$/.test(kind)
      ? flechette.timestamp(UNITS[kind[2]], text === "" ? null : text)
      : undefined;
  }
}

function mapOf({ flags }, [entries]) {
  const type = flechette.map(flechette.int8(), flechette.int8(),
    (flags & KEYS_SORTED) !== 0);
  return { ...type, children: [entries] };
}

function storageType(field, path) {
  const { format } = field;
  const fields = field.children.map((child) => fieldOf(child, path));
  const type = format === "+m" ? mapOf(field, fields)
    : format.includes(":") ? longType(field, fields)
      : Object.hasOwn(TYPES, format) ? TYPES[format](...fields) : undefined;
  if (type === undefined) {
    throw new UvarrowError("ENOTSUP", -95, `flechette has no type for ` +
      `${path === "" ? "an array" : `column '${path}'`} of format '${format}'`);
  }
  return type;
}

function typeOf(field, path) {
  const type = storageType(field, path);
  return field.dictionary === undefined ? type : flechette.dictionary(
    typeOf(field.dictionary, path), type, (field.flags & ORDERED) !== 0);
}

function metadataOf({ metadata }) {
  const entries = Object.entries(metadata);
  return entries.length > 0 ? new Map(entries) : null;
}

function fieldOf(field, parent = "") {
  const path = parent === "" ? field.name : `${parent}.${field.name}`;
  return flechette.field(field.name, typeOf(field, path),
    (field.flags & NULLABLE) !== 0, metadataOf(field));
}

// ---- buffers -----------------------------------------------------------------

/** `count` items of an array of this class, from item `at` on */
function items(ArrayType, bytes, at, count) {
  if (bytes.byteLength === 0) return new ArrayType(count); // without rows
  return new ArrayType(bytes.buffer,
    bytes.byteOffset + at * ArrayType.BYTES_PER_ELEMENT, count);
}

/** `count` bits from bit `at` on */
function bits(bytes, at, count) {
  const first = at >> 3, shift = at & 7;
  const size = (count + 7) >> 3;
  if (bytes.byteLength === 0 || shift === 0) {
    return bytes.subarray(first, first + size);
  }
  const out = new Uint8Array(size);
  for (let i = 0; i < size; i++) {
    out[i] = bytes[first + i] >> shift | bytes[first + i + 1] << (8 - shift);
  }
  return out;
}

function zerosOf(bytes, count) {
  let zeros = count;
  for (let i = 0; i < count; i++) zeros -= bytes[i >> 3] >> (i & 7) & 1;
  return zeros;
}

/** { validity, nullCount } of `count` rows of an array, from row `at` of its
 * buffers on */
function nullsOf({ buffers, length, nullCount, offset }, at, count) {
  const validity = bits(buffers[0], at, count);
  const isWhole = at === offset && count === length && nullCount >= 0;
  return { validity, nullCount: validity.byteLength === 0 ? 0
    : isWhole ? nullCount : zerosOf(validity, count) };
}

// ---- arrays ------------------------------------------------------------------

const whole = (data, type, how) => batchOf(data, type, 0, data.length, how);

const childrenOf = (data, type, child) =>
  data.children.map((each, i) => child(each, type.children[i].type));

/** Items of one row in the array of its class */
function width({ bitWidth, typeId, unit }) {
  if (typeId === Type.Decimal) return Math.max(bitWidth / 64, 1);
  return typeId === Type.Interval && unit === IntervalUnit.DAY_TIME ? 2 : 1;
}

function valuesOf({ buffers }, type, at, count) {
  const each = width(type);
  return type.values === undefined // an interval of 16 bytes
    ? buffers[1].subarray(at * 16, (at + count) * 16)
    : items(type.values, buffers[1], at * each, count * each);
}

/** Runs that begin with row `at`: where it is not the first, they are counted
 * anew. */
function runsOf({ children: [ends, values] }, type, at, how) {
  const types = type.children.map((field) => field.type);
  const runs = whole(ends, types[0], how);
  if (at === 0) return [runs, whole(values, types[1], how)];
  const shift = runs.values instanceof BigInt64Array ? BigInt(at) : at;
  let first = 0;
  while (first < runs.length && runs.values[first] <= shift) first++;
  runs.values = runs.values.slice(first).map((end) => end - shift);
  runs.length -= first;
  return [runs, batchOf(values, types[1], first, values.length - first, how)];
}

// What a batch of a type has beside its nulls: `count` rows, from row `at` of the
// buffers on
const LAYOUTS = new Map();
const layout = (make, ...types) => types.forEach((type) =>
  LAYOUTS.set(type, make));

layout((data, type, at, count) => ({ values: valuesOf(data, type, at, count) }),
  Type.Int, Type.Time, Type.Duration, Type.Float, Type.Decimal, Type.Date,
  Type.Timestamp, Type.Interval);
layout(({ buffers }, type, at, count) => ({
  values: bits(buffers[1], at, count),
}), Type.Bool);
layout(({ buffers }, { stride }, at, count) => ({
  values: buffers[1].subarray(at * stride, (at + count) * stride),
}), Type.FixedSizeBinary);
layout(({ buffers }, { offsets }, at, count) => ({
  offsets: items(offsets, buffers[1], at, count + 1), values: buffers[2],
}), Type.Utf8, Type.LargeUtf8, Type.Binary, Type.LargeBinary);
layout(({ buffers }, type, at, count) => ({ // the last one has their sizes
  values: buffers[1].subarray(at * 16, (at + count) * 16),
  data: buffers.slice(2, -1),
}), Type.BinaryView, Type.Utf8View);
layout((data, type, at, count, how) => ({
  offsets: items(type.offsets, data.buffers[1], at, count + 1),
  children: childrenOf(data, type, (...child) => whole(...child, how)),
}), Type.List, Type.LargeList, Type.Map);
layout((data, type, at, count, how) => ({
  offsets: items(type.offsets, data.buffers[1], at, count),
  sizes: items(type.offsets, data.buffers[2], at, count),
  children: childrenOf(data, type, (...child) => whole(...child, how)),
}), Type.ListView, Type.LargeListView);
layout((data, type, at, count, how) => ({
  children: childrenOf(data, type, (...child) =>
    batchOf(...child, at * type.stride, count * type.stride, how)),
}), Type.FixedSizeList);
layout((data, type, at, count, how) => ({
  children: childrenOf(data, type, (...child) =>
    batchOf(...child, at, count, how)),
}), Type.Struct);
layout((data, type, at, count, how) => ({
  typeIds: items(Int8Array, data.buffers[0], at, count),
  offsets: type.mode === UnionMode.Dense
    ? items(Int32Array, data.buffers[1], at, count) : null,
  children: childrenOf(data, type, (...child) => type.mode === UnionMode.Dense
    ? whole(...child, how) : batchOf(...child, at, count, how)),
}), Type.Union);
layout((data, type, at, count, how) => ({
  children: runsOf(data, type, at, how),
}), Type.RunEndEncoded);
layout((data, { indices }, at, count) => ({
  values: valuesOf(data, indices, at, count),
}), Type.Dictionary);
layout(() => ({}), Type.Null);

/** A batch of flechette: `count` rows of an array, from row `start` on */
function batchOf(data, type, start, count, how) {
  const at = data.offset + start;
  const { typeId } = type;
  const nulls = typeId === Type.Null ? { nullCount: count }
    : typeId === Type.Union || typeId === Type.RunEndEncoded ? { nullCount: 0 }
      : nullsOf(data, at, count);
  const batch = new (batchType(type, how))({
    length: count, type, ...nulls,
    ...LAYOUTS.get(typeId)(data, type, at, count, how),
  });
  if (typeId !== Type.Dictionary) return batch;
  return batch.setDictionary(new Column(
    [whole(data.dictionary, type.dictionary, how)], type.dictionary));
}

// ---- columns and tables --------------------------------------------------------

const isSame = (a, b) => a === b || JSON.stringify(a) === JSON.stringify(b);

/** A Column of one array, or of several of one type */
function columnFromData(data, how) {
  const all = Array.isArray(data) ? data : [data];
  if (all.length === 0 || !all.every((each) => each?.buffers !== undefined)) {
    refuse("data", "the data of a batch, or a child of it");
  }
  const [{ field }] = all;
  if (!all.every((each) => isSame(each.field, field))) {
    throw new UvarrowError("EINVAL", -22, "the arrays have different types");
  }
  const type = typeOf(field, field.name);
  return new Column(all.map((each) => whole(each, type, options(how))), type);
}

/** A Table of one batch, or of several of one schema */
function tableFromBatches(batches, how) {
  const { useProxy } = options(how);
  const all = batches instanceof Batch ? [batches] : [...batches ?? []];
  if (all.length === 0 || !all.every((each) => each instanceof Batch)) {
    refuse("batches", "a Batch, or several");
  }
  const [{ schema }] = all;
  if (!all.every((each) => isSame(each.schema, schema))) {
    throw new UvarrowError("EINVAL", -22, "the batches have different schemas");
  }
  const fields = schema.children.map((child) => fieldOf(child));
  const columns = fields.map(({ type }, i) => new Column(all.map(({ data }) =>
    batchOf(data.children[i], type, data.offset, data.length, options(how))),
  type));
  return new Table({
    version: flechette.Version.V5, endianness: flechette.Endianness.Little,
    fields, metadata: metadataOf(schema),
  }, columns, useProxy);
}

module.exports = { columnFromData, tableFromBatches };
