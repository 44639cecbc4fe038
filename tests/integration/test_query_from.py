#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `uvarrow query --from` on what Arrow C++ writes: streams and
files, from a file and from standard input. UVA_TEST_TOOL is the path of the
command. PATIENCE only ends a test that hangs.
"""
import os
import subprocess
import tempfile
import unittest

try:
    import pyarrow as pa
except ImportError:
    pa = None

PATIENCE = 100  # seconds
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


if __name__ == "__main__":
    unittest.main()
