#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The formats of `uvarrow query`: compression, plain types, arrays of JSON, a
limit of rows, and Parquet as DuckDB writes it. Environment variables as for
test_serve_query.py.
"""
import json
import os
import sys
import unittest

sys.dont_write_bytecode = True
from command import environment, on_terminal, path_of, query  # noqa: E402

try:
    import duckdb
    import pyarrow
    import pyarrow.parquet
except ImportError:
    duckdb = pyarrow = None

ENDLESS = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
           "SELECT i, 'some text ' || (i % 7) AS text FROM n")
ROWS = ENDLESS + " LIMIT {}"


class Formats(unittest.TestCase):
    def run_to(self, name, *words):
        path = path_of(name)
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        done = query(*words, "--output", path, "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return path

    def assert_refused(self, done, *parts):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


@unittest.skipIf(pyarrow is None, "there is no pyarrow")
class Arrow(Formats):
    def test_arrow_is_compressed(self):
        sql = ROWS.format(5000)
        plain = self.run_to("a.arrow", ":memory:", sql)
        for name in ("b.arrow", "b.arrows"):
            for method in ("lz4", "zstd"):
                path = self.run_to(name, ":memory:", sql, "--compression",
                                   method)
                self.assertLess(os.path.getsize(path),
                                os.path.getsize(plain) / 2)
                opened = pyarrow.ipc.open_file if name == "b.arrow" else \
                    pyarrow.ipc.open_stream
                with open(path, "rb") as file:
                    table = opened(file).read_all()
                with open(plain, "rb") as file:
                    self.assertEqual(table,
                                     pyarrow.ipc.open_file(file).read_all())
                self.assertEqual(query("--from", path).stdout.count("\n"), 5001)
        path = self.run_to("c.arrow", ":memory:", sql, "--compression=none")
        self.assertEqual(os.path.getsize(path), os.path.getsize(plain))

    def plain(self, table):
        """The table after a way through the command, and how it was."""
        path = path_of("types.arrows")
        self.addCleanup(os.remove, path)
        with pyarrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
        out = self.run_to("plain.arrows", "--from", path, "--plain-types")
        with open(out, "rb") as file:
            return pyarrow.ipc.open_stream(file).read_all()

    def test_types_that_few_readers_know_are_cast(self):
        pa = pyarrow
        runs = pa.RunEndEncodedArray.from_arrays([2, 3, 4], ["a", None, "b"])
        views = pa.array(["x", None, "a text that is longer than a view", ""],
                         pa.string_view())
        nested = pa.array([[{"v": "a"}], None, [], [{"v": None}]],
                          pa.list_view(pa.struct([("v", pa.string_view())])))
        table = pa.table({
            "runs": runs, "views": views,
            "bytes": pa.array([b"x", None, b"", b"y"], pa.binary_view()),
            "nested": nested,
            "large": pa.array([[1], None, [], [2]],
                              pa.large_list_view(pa.int32())),
            "words": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None]),
                                                    ["p", "q"]),
            "odd": pa.DictionaryArray.from_arrays(
                pa.array([0, 1, 0, None]),
                pa.array(["p", "q"], pa.string_view())),
            "n": [1, 2, 3, None]})
        got = self.plain(table)
        self.assertEqual(got.schema.types, [
            pa.string(), pa.string(), pa.binary(),
            pa.list_(pa.struct([("v", pa.string())])),
            pa.large_list(pa.int32()), pa.dictionary(pa.int64(), pa.string()),
            pa.string(), pa.int64()])
        self.assertEqual(got.column_names, table.column_names)
        for name in table.column_names:
            self.assertEqual(got[name].to_pylist(),
                             table[name].to_pylist(), name)

    def test_runs_of_views_in_a_struct_are_cast(self):
        pa = pyarrow
        runs = pa.RunEndEncodedArray.from_arrays(
            [1, 3], pa.array(["a", "b"], pa.string_view()))
        table = pa.table({"s": pa.StructArray.from_arrays([runs], ["r"])})
        got = self.plain(table)
        self.assertEqual(got.schema.types, [pa.struct([("r", pa.string())])])
        self.assertEqual(got["s"].to_pylist(),
                         [{"r": "a"}, {"r": "b"}, {"r": "b"}])

    def test_plain_types_stay(self):
        table = pyarrow.table({"a": [1, 2], "b": ["x", None]})
        self.assertEqual(self.plain(table), table)


class Json(Formats):
    def test_an_array_has_all_rows(self):
        for rows in (1, 2, 1024, 5000):
            done = query(":memory:", ROWS.format(rows), "--format",
                         "json-array")
            self.assertEqual(json.loads(done.stdout),
                             [{"i": i, "text": f"some text {i % 7}"}
                              for i in range(1, rows + 1)])
            self.assertEqual(done.stdout.count("\n"), rows)
            self.assertIn(f"complete: {rows:,} row", done.stderr)

    def test_no_rows_are_an_empty_array(self):
        done = query(":memory:", "SELECT 1 AS a WHERE 0", "--format=json-array")
        self.assertEqual(done.stdout, "[]\n")

    def test_line_breaks_in_a_text_are_no_rows(self):
        done = query(":memory:", "SELECT char(10, 44, 93) AS a UNION ALL "
                     "SELECT 'b'", "--format", "json-array", "--quiet")
        self.assertEqual(done.stdout, '[{"a":"\\n,]"},\n{"a":"b"}]\n')

    def test_an_array_that_fails_has_no_end(self):
        sql = ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
               "WHERE i < 3000) SELECT abs(CASE i WHEN 2500 THEN "
               "-9223372036854775808 ELSE i END) AS x FROM n")
        done = query(":memory:", sql, "--format", "json-array")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout[:9], '[{"x":1},')
        with self.assertRaises(ValueError):
            json.loads(done.stdout)

    def test_a_terminal_has_it_too(self):
        lines, _ = on_terminal(":memory:", "SELECT 1 AS a", "--format",
                               "json-array")
        self.assertEqual(lines[-1], '[{"a":1}]')


class Limit(Formats):
    def test_an_endless_query_ends(self):
        for limit in (0, 1, 2, 1023, 1024, 1025, 3000):
            done = query(":memory:", ENDLESS, "--limit", str(limit))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("\n"), limit + 1)
            self.assertIn("complete", done.stderr)

    def test_a_table_and_a_file_have_a_limit(self):
        lines, _ = on_terminal(":memory:", ENDLESS, "--limit", "2",
                               env=environment(NO_COLOR="1"))
        self.assertEqual(len(lines), 5)
        path = self.run_to("limit.arrow", ":memory:", ROWS.format(100))
        done = query("--from", path, "--limit=7", "--format", "json")
        self.assertEqual(done.stdout.count("\n"), 7)


class Refused(Formats):
    def test_options_that_have_no_sense(self):
        for words, part in (
                (("--limit", "-1"), "--limit takes a number of rows, not '-1'"),
                (("--limit", "x"), "not 'x'"), (("--limit", ""), "not ''"),
                (("--limit", "1k"), "not '1k'"),
                (("--limit", "99999999999999999999"), "not '9999"),
                (("--compression", "gzip"), "none, lz4 or zstd, not 'gzip'"),
                (("--compression", "lz4"), "--compression is for the formats"),
                (("--compression=zstd", "--format=json"), "arrow-file"),
                (("--compression=zstd", "--format=table"), "arrow-file"),
                (("--plain-types",), "--plain-types is for the formats arrow"),
                (("--plain-types=1", "--format=arrow"), "takes no value"),
                (("--format", "parquet"), "there is no format 'parquet'"),
                (("--format=json-array", "--null=x"), "is for CSV alone")):
            with self.subTest(words=words):
                self.assert_refused(query(":memory:", "SELECT 1", *words), part)


@unittest.skipIf(duckdb is None or os.environ["UVA_TEST_SANITIZE"],
                 "there is no DuckDB")
class Parquet(Formats):
    """The commands of docs/query.md."""

    def setUp(self):
        self.path = path_of("out.parquet")
        self.addCleanup(os.remove, self.path)

    def table(self):
        return pyarrow.parquet.read_table(self.path)

    def test_duckdb_writes_the_rows_of_a_query(self):
        done = query("--driver", "duckdb",
                     f"COPY (SELECT range AS i FROM range(5000)) TO "
                     f"'{self.path}' (FORMAT parquet, COMPRESSION zstd)")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.table()["i"].to_pylist(), list(range(5000)))

    def test_duckdb_writes_the_rows_of_another_database(self):
        rows = self.run_to("rows.csv", ":memory:", ROWS.format(3000))
        done = query("--driver", "duckdb", f"COPY (SELECT * FROM '{rows}') TO "
                                           f"'{self.path}' (FORMAT parquet)")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.table()["i"].to_pylist(), list(range(1, 3001)))

    def test_duckdb_reads_parquet(self):
        pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2]}), self.path)
        done = query("--driver", "duckdb",
                     f"SELECT sum(a)::INT AS s FROM '{self.path}'")
        self.assertEqual(done.stdout, "s\n3\n")


if __name__ == "__main__":
    unittest.main()
