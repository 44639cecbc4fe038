// SPDX-License-Identifier: Apache-2.0
// The declarations: TypeScript accepts right uses of them, refuses wrong ones, and
// finds in them what JavaScript has.
"use strict";
const assert = require("node:assert/strict");
const path = require("node:path");
const { test } = require("node:test");
const { uvarrow } = require("./support/kit.js");
const { packages } = require("./support/packages.js");

const { typescript: ts, skip } = packages("typescript");
const folder = path.join(__dirname, "types");
const declared = path.join(__dirname, "../uvarrow.d.ts");

const parsed = new Map(); // what is not changed

/** The program of types/tsconfig.json, in which a text takes the place of a file. */
function program(changed, text) {
  const { config } = ts.readConfigFile(path.join(folder, "tsconfig.json"),
    ts.sys.readFile);
  const { fileNames, options } = ts.parseJsonConfigFileContent(config, ts.sys,
    folder);
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (name, how) => {
    if (path.resolve(name) === changed)
      return ts.createSourceFile(name, text, how);
    if (!parsed.has(name)) parsed.set(name, getSourceFile.call(host, name, how));
    return parsed.get(name);
  };
  return ts.createProgram(fileNames, options, host);
}

/** What the compiler says of the declarations and their uses. */
const complaints = (made) => [...made.getOptionsDiagnostics(),
  ...made.getGlobalDiagnostics(), ...made.getSourceFiles()
    .filter(({ fileName }) => !fileName.includes("node_modules"))
    .flatMap((file) => [...made.getSyntacticDiagnostics(file),
      ...made.getSemanticDiagnostics(file)])]
  .map(({ file, messageText, start }) =>
    `${file === undefined ? "" : path.basename(file.fileName)}:` +
    `${file?.getLineAndCharacterOfPosition(start).line + 1}: ` +
    ts.flattenDiagnosticMessageText(messageText, " "));

test("right uses are accepted, and wrong ones refused", { skip }, () => {
  assert.deepEqual(complaints(program()), []);
});

test("a declaration that is too wide or too narrow is noticed", { skip }, () => {
  const text = ts.sys.readFile(declared);
  const complaintsOf = (from, to) => {
    assert(text.includes(from));
    return complaints(program(declared, text.replace(from, to)));
  };
  assert.match(complaintsOf("limit(rows: number)", "limit(rows: unknown)").join(),
    /refused\.mts:\d+: Unused '@ts-expect-error'/);
  assert.match(complaintsOf("driver?: string", "driver?: number").join(),
    /accepted\.mts:\d+: .*not assignable/);
});

/** The names of a class, of the object and of those before it. */
function members(value) {
  const out = new Set();
  for (let at = value.prototype; at !== Object.prototype &&
    at !== Error.prototype; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) out.add(name);
  out.delete("constructor");
  return [...out].sort();
}

test("the declarations name what JavaScript has", { skip }, () => {
  const made = program();
  const checker = made.getTypeChecker();
  const values = checker.getExportsOfModule(
    checker.getSymbolAtLocation(made.getSourceFile(declared)))
    .filter(({ flags }) => flags & ts.SymbolFlags.Value);
  assert.deepEqual(values.map(({ name }) => name).sort(),
    Object.keys(uvarrow).sort());
  const classes = values.filter(({ flags }) => flags & ts.SymbolFlags.Class);
  assert.deepEqual(classes.map(({ name }) => name).sort(),
    ["Batch", "Pool", "Session", "Stream", "UvarrowError"]);
  for (const symbol of classes.filter(({ name }) => name !== "UvarrowError"))
    assert.deepEqual(checker.getDeclaredTypeOfSymbol(symbol).getProperties()
      .map(({ name }) => name).filter((name) => !name.startsWith("__@")).sort(),
    members(uvarrow[symbol.name]), symbol.name);
});
