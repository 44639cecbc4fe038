#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `uvarrow query --from` on the output of Arrow C++: streams and
files, from a file and from standard input; and on texts that are not UTF-8,
which SQLite keeps. UVA_TEST_TOOL is the path of the command, UVA_TEST_DRIVER
the path of the driver. PATIENCE only ends a test that hangs.
"""
import json
import os
import subprocess
import tempfile
import unittest

try:
    import pyarrow as pa
except ImportError:
    pa = None

PATIENCE = 600  # seconds
ROWS = 5000


def encode(new, **options):
    sink = pa.BufferOutputStream()
    table = pa.table({"n": range(ROWS), "text": [f"row {i}" for i in range(ROWS)]})
    with new(sink, table.schema,
             options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=700)
    return sink.getvalue().to_pybytes()


def expected():
    return "n,text\n" + "".join(f"{i},row {i}\n" for i in range(ROWS))


@unittest.skipIf(pa is None, "pyarrow is not installed")
class From(unittest.TestCase):
    def run_tool(self, *arguments, data=b""):
        return subprocess.run(
            [os.environ["UVA_TEST_TOOL"], "query", *arguments], input=data,
            capture_output=True, timeout=PATIENCE, check=False)

    def run_on(self, data):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return self.run_tool("--from", file.name)

    def test_streams_and_files(self):
        for new in pa.ipc.new_stream, pa.ipc.new_file:
            data = encode(new)
            for done in (self.run_on(data),
                         self.run_tool("--from", "-", data=data)):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.decode(), expected())

    def test_what_is_cut_off(self):
        data = encode(pa.ipc.new_stream)
        done = self.run_on(data[:len(data) // 2])
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"the input ends at byte", done.stderr)
        self.assertTrue(expected().startswith(done.stdout.decode()))

    def test_a_stream_without_its_end_mark(self):
        for quiet in (), ("--quiet",):
            done = self.run_tool("--from", "-", *quiet,
                                 data=encode(pa.ipc.new_stream)[:-8])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.decode(), expected())
            note, *rest = done.stderr.decode().splitlines()
            self.assertTrue(note.startswith("uvarrow: note: Arrow IPC: the input"
                                            " ends at byte "), note)
            self.assertTrue(note.endswith("rows may be missing"), note)
            self.assertEqual(len(rest), 0 if quiet else 1)

    def test_batches_above_256_mib(self):
        """Zeroes take hardly any room on a disk. Bytes after a stream are not
        read, but they are part of the file."""
        size = 270 << 20
        column = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(1 << 20), size >> 20,
            [None, pa.py_buffer(bytearray(size))])
        batch = pa.record_batch([column], names=["zeroes"])
        arguments = ["--format", "arrow", "--output", "/dev/null", "--from"]
        with tempfile.NamedTemporaryFile() as file:
            with pa.ipc.new_stream(file, batch.schema, options=
                                   pa.ipc.IpcWriteOptions(
                                       compression="zstd")) as writer:
                writer.write_batch(batch)
            file.flush()
            done = self.run_tool(*arguments, file.name)
            if b"built without" in done.stderr:
                self.skipTest("ZSTD is not there")
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"decompressed or copied (--max-bytes)\n", done.stderr)
            done = self.run_tool(*arguments, file.name, "--max-bytes", str(size))
            self.assertEqual(done.returncode, 0, done.stderr)
            os.truncate(file.name, size // 16)
            done = self.run_tool(*arguments, file.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            os.truncate(file.name, size // 16 - 1)
            done = self.run_tool(*arguments, file.name)
            self.assertEqual(done.returncode, 1)

    def test_mistakes(self):
        done = self.run_tool("--from", "/no/such/file")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"cannot read /no/such/file: No such file", done.stderr)
        done = self.run_on(b"n,text\n1,one\n")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"it begins with 6e 2c 74 65", done.stderr)
        done = self.run_tool("--from", "x", "SELECT 1")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"--from reads rows from a file", done.stderr)


class NotUtf8(unittest.TestCase):
    """As in Arrow, texts are not checked where they are read; bytes that are
    no text in JSON are replaced there."""

    BYTES = (b"a\xffb", b"\xc3", b"\xed\xa0\x80\n", b"\"\xf4\x90\x80\x80,",
             b"\x80" * 100, "\u2603".encode())

    def run_tool(self, *arguments, data=b""):
        done = subprocess.run(
            [os.environ["UVA_TEST_TOOL"], "query", "--quiet", *arguments],
            input=data, capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout

    def read(self, data, form):
        return self.run_tool("--from", "-", "--format", form, data=data)

    def encode(self, sql):
        return self.run_tool("--driver", os.environ["UVA_TEST_DRIVER"], "--uri",
                             ":memory:", "--format", "arrow", sql)

    def test_values(self):
        data = self.encode(" UNION ALL ".join(
            f"SELECT {i} AS i, CAST(x'{text.hex()}' AS TEXT) AS t"
            for i, text in enumerate(self.BYTES)))
        lines = self.read(data, "json").split(b"\n")[:-1]
        for i, text in enumerate(self.BYTES):
            row = json.loads(lines[i].decode("utf-8"))  # strictly
            self.assertEqual(row["i"], i)
            self.assertEqual(row["t"].replace("\ufffd", ""),
                             text.decode("utf-8", "ignore"))
        self.assertEqual(self.read(data, "arrow"), data)
        self.assertIn(b"\n0,a\xffb\n1,\xc3\n2,\"\xed\xa0\x80\n\"\n3,",
                      self.read(data, "csv"))

    def test_names_of_columns(self):
        data = self.encode(b"SELECT 1 AS \"a\xffb\"")
        self.assertEqual(json.loads(self.read(data, "json").decode("utf-8")),
                         {"a\ufffdb": 1})
        self.assertEqual(self.read(data, "csv"), b"a\xffb\n1\n")
        self.assertEqual(self.read(data, "arrow"), data)


if __name__ == "__main__":
    unittest.main()
