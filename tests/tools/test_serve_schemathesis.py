#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that Schemathesis makes of the OpenAPI description of `uvarrow serve`,
valid ones and others, and whether the answers are those that it describes.

It is 93 MB, so that it is not among the packages of scripts/bootstrap: the test is
skipped unless UVA_SCHEMATHESIS is its program, as in .ci/nightly, of
scripts/requirements-schemathesis.txt. UVA_SCHEMATHESIS_EXAMPLES is how many requests
it makes of each operation. Otherwise environment variables as for
test_serve_query.py.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from server import PATIENCE, Server, main  # noqa: E402

PROGRAM = os.environ.get("UVA_SCHEMATHESIS") or shutil.which("schemathesis")
HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.environ.get("UVA_SCHEMATHESIS_EXAMPLES", "50")


class Generated(unittest.TestCase):
    def answers_are_described(self, *options, headers=()):
        with tempfile.TemporaryDirectory() as folder, Server(
                "--query-ms", "2000", *options, name="generated") as server:
            done = subprocess.run(
                [PROGRAM, "--config-file", os.path.join(HERE,
                                                        "schemathesis.toml"),
                 "run", f"http://127.0.0.1:{server.port}/openapi.json",
                 "--max-examples", EXAMPLES, "--seed", "1", "--no-color",
                 *(word for header in headers for word in ("--header", header))],
                cwd=folder, capture_output=True, text=True, check=False,
                timeout=PATIENCE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(server.ask("/health").status, 200)
            if not headers:
                server.wait(lambda stats: not stats["queries"]["running"])

    def test_a_database_that_is_only_read(self):
        self.answers_are_described()

    def test_a_database_that_may_be_changed(self):
        self.answers_are_described("--writable")

    def test_with_a_token(self):
        token = "a-token-of-20-bytes."
        with tempfile.NamedTemporaryFile("w", suffix=".token") as file:
            file.write(token + "\n")
            file.flush()
            self.answers_are_described(
                "--token-file", file.name,
                headers=[f"Authorization: Bearer {token}"])


if __name__ == "__main__":
    if PROGRAM is None:
        print("there is no schemathesis: see UVA_SCHEMATHESIS")
        sys.exit(77)
    main()
