#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The line of progress of `uvarrow query` on a terminal: of how many rows, where
the source knows. The output is not read meanwhile, so that the command neither
ends nor has all rows, however fast it is. UVA_TEST_TOOL is the path of the
command, UVA_TEST_DRIVER the path of the driver for SQLite.
"""
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

try:
    import pyarrow as pa
except ImportError:
    pa = None

sys.dont_write_bytecode = True
from test_query_tool import ENDLESS_ROWS  # noqa: E402

ROWS = 2_000_000 # CSV of 15 MB
BATCHES = 100


class Progress(unittest.TestCase):
    def lines(self, *arguments):
        """Each line of progress of a command, until it is killed."""
        ours, other = pty.openpty()
        with subprocess.Popen([os.environ["UVA_TEST_TOOL"], "query", *arguments],
                              stdout=subprocess.PIPE, stderr=other) as process:
            os.close(other)
            text = b""
            try:
                while True:
                    text += os.read(ours, 4096)
                    *whole, text = text.split(b"\r\x1b[K")
                    yield from (line.decode() for line in whole if line)
            finally:
                process.kill()
                os.close(ours)

    def of_file(self, new, rows=ROWS):
        with tempfile.NamedTemporaryFile() as file:
            table = pa.table({"n": range(rows)})
            with new(file.name, table.schema) as writer:
                writer.write_table(table, max_chunksize=max(rows // BATCHES, 1))
            yield from self.lines("--from", file.name)

    def find(self, lines, pattern):
        for line in lines:
            found = re.match(pattern, line)
            if found:
                lines.close()
                return found
        raise AssertionError("no such line")

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_a_file_knows_its_rows(self):
        found = self.find(self.of_file(pa.ipc.new_file),
                          r"\d+\.\d s  ([\d,]+) of 2,000,000 rows  \d")
        self.assertLess(int(found[1].replace(",", "")), ROWS)

    @unittest.skipIf(pa is None, "pyarrow is not installed")
    def test_a_stream_in_a_file_knows_its_bytes(self):
        found = self.find(self.of_file(pa.ipc.new_stream),
                          r"\d+\.\d s  [1-9][\d,]+ rows \((\d+) % read\)  \d")
        self.assertLess(int(found[1]), 100)
        self.assertGreater(int(found[1]), 0)

    def test_a_query_of_sqlite_does_not_know(self):
        self.find(self.lines("--driver", os.environ["UVA_TEST_DRIVER"],
                             "--uri", ":memory:", ENDLESS_ROWS),
                  r"\d+\.\d s  [1-9][\d,]+ rows  \d")


if __name__ == "__main__":
    unittest.main()
