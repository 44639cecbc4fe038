// SPDX-License-Identifier: Apache-2.0
// The packages of npm, in an empty folder, without a network.
"use strict";
const assert = require("node:assert/strict");
const { execFileSync, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");

const root = path.join(__dirname, "../..");
const build = path.join(process.env.UVARROW_ADDON, "../..");
const driver = process.env.UVA_TEST_DRIVER;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "uvarrow-"));
const env = { ...process.env, npm_config_cache: path.join(folder, "cache") };
delete env.UVARROW_ADDON;
const hasNpm = spawnSync("npm", ["--version"], { env }).status === 0;
const skip = hasNpm ? false : "npm is not here (Debian: npm)";
const platform = `@uvarrow/linux-${process.arch}-gnu`;
const packed = path.join(folder, "packed");

const run = (cwd, program, ...args) =>
  execFileSync(program, args, { cwd, env, encoding: "utf8", stdio: "pipe" });

/** A folder in which these packages are installed as a user does it. */
function installed(name, ...packages) {
  const at = path.join(folder, name);
  fs.mkdirSync(at);
  fs.writeFileSync(path.join(at, "package.json"), "{}");
  run(at, "npm", "install", "--offline", "--no-audit", "--no-fund",
    ...packages);
  return at;
}

/** The build folder as it is after an update: with a library of before. */
function buildWithMore() {
  const at = path.join(folder, "build");
  const libraries = path.join(at, "runtime/adbc");
  fs.mkdirSync(libraries, { recursive: true });
  fs.symlinkSync(path.join(build, "node"), path.join(at, "node"));
  for (const name of fs.readdirSync(path.join(build, "runtime/adbc")))
    if (name.startsWith("libuvarrow-sqlite.so"))
      fs.copyFileSync(path.join(build, "runtime/adbc", name),
        path.join(libraries, name));
  for (const version of ["0.1", "9.9"])
    fs.writeFileSync(path.join(libraries, `libuvarrow-sqlite.so.${version}`), "");
  return at;
}

let main, binary, both;

test.before(() => {
  if (skip) return;
  run(root, "scripts/node_package", "--from", buildWithMore(), "--out", packed);
  const version = require("../package.json").version;
  main = path.join(packed, `uvarrow-${version}.tgz`);
  binary = path.join(packed,
    `uvarrow-linux-${process.arch}-gnu-${version}.tgz`);
  both = installed("both", main, binary);
});
test.after(() => fs.rmSync(folder, { recursive: true }));

const files = (at) => fs.readdirSync(at).sort();

test("the packages have these files", { skip }, () => {
  assert.equal(files(packed).length, 2);
  assert.deepEqual(files(path.join(both, "node_modules/uvarrow")), ["LICENSE",
    "README.md", "flechette.d.ts", "flechette.mjs", "index.js", "index.mjs",
    "lib", "package.json", "uvarrow.d.ts"]);
  assert.deepEqual(files(path.join(both, "node_modules/uvarrow/lib")),
    files(path.join(root, "node/lib")));
  const { version } = require("../package.json");
  const ofLibrary = version.replace(/^(0\.\d+|\d+).*/, "$1"); // SOVERSION
  assert.deepEqual(files(path.join(both, "node_modules", platform)), ["LICENSE",
    `libuvarrow-sqlite.so.${ofLibrary}`, "licenses", "package.json",
    "uvarrow.node"]);
});

test("the binary's package is for one platform, and compiles nothing",
  { skip }, () => {
    const { cpu, libc, os: systems, scripts, version } = JSON.parse(
      fs.readFileSync(path.join(both, "node_modules", platform,
        "package.json")));
    assert.deepEqual([systems, cpu, libc, scripts],
      [["linux"], [process.arch], ["glibc"], undefined]);
    const { optionalDependencies, scripts: ofMain } =
      require("../package.json");
    assert.equal(optionalDependencies[platform], version);
    assert.equal(ofMain, undefined);
  });

const query = `
  const pool = new Pool({ driver: process.env.UVA_TEST_DRIVER, uri: ":memory:" });
  let rows = 0;
  for await (const batch of pool.query("SELECT 1 UNION SELECT 2"))
    rows += batch.numRows;
  await pool.close();
  console.log(rows, typeof Pool.prototype.query);`;

test("require() and import give what is installed",
  { skip: skip || (driver ? false : "the ADBC driver for SQLite is not here") },
  () => {
    fs.writeFileSync(path.join(both, "a.cjs"),
      `const { Pool } = require("uvarrow"); (async () => {${query}})();`);
    fs.writeFileSync(path.join(both, "a.mjs"),
      `import uvarrow, { Pool } from "uvarrow"; ${query}
       if (uvarrow.Pool !== Pool) throw new Error("two");`);
    for (const name of ["a.cjs", "a.mjs"])
      assert.equal(run(both, process.execPath, name), "2 function\n");
  });

test("import gives each name of require()", { skip }, () => {
  fs.writeFileSync(path.join(both, "names.mjs"),
    `import * as all from "uvarrow";
     console.log(Object.keys(all).filter((name) => name !== "default"
       && name !== "module.exports").sort().join());`);
  assert.equal(run(both, process.execPath, "names.mjs").trim(),
    Object.keys(require("..")).sort().join());
});

test("uvarrow/flechette is found, and says what it needs", { skip }, () => {
  for (const code of ['require("uvarrow/flechette")',
    'import("uvarrow/flechette")'])
    assert.match(spawnSync(process.execPath, ["-e", code], { cwd: both,
      env: { ...env, NODE_PATH: "" }, encoding: "utf8" }).stderr,
    /uvarrow\/flechette needs the package @uwdata\/flechette/);
});

const failure = (at) => spawnSync(process.execPath,
  ["-e", 'require("uvarrow")'], { cwd: at, env, encoding: "utf8" }).stderr;

test("without the binary's package the error says why", { skip }, () => {
  const at = installed("main", main);
  assert.match(failure(at), new RegExp("uvarrow has not found its binary for " +
    `linux ${process.arch}, which is an optional dependency`));
});

test("an error of the loader is not taken for a missing package", { skip },
  () => {
    fs.writeFileSync(path.join(both, "node_modules", platform, "uvarrow.node"),
      "no binary");
    assert.match(failure(both), new RegExp("the binary of uvarrow cannot be " +
      `loaded on linux ${process.arch}: .*file too short`));
  });
