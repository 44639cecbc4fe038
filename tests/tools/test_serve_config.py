#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve --config`: each option may stand in the file, which is refused
with one line if it is nonsense. tests/unit/serve/test_settings.c has the lines.
Environment variables as for test_serve_query.py.
"""
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from server import PATIENCE, Server, database, folder, main  # noqa: E402

TOKEN = "0123456789abcdef0123456789abcdef"


def serve(*options):
    return subprocess.run([os.environ["UVA_TEST_TOOL"], "serve", *options],
                          capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


class Config(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(folder(), f"config-{os.getpid()}.conf")

    def tearDown(self):
        os.remove(self.path)

    def write(self, *lines):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def test_a_server_of_a_file(self):
        token = self.path + ".token"
        with open(os.open(token, os.O_CREAT | os.O_WRONLY, 0o600), "w",
                  encoding="ascii") as file:
            file.write(TOKEN)
        path = database("config")
        self.write("# who asks", f"token-file = {token}",
                   f"driver = {os.environ['UVA_TEST_DRIVER']}",
                   f"database = {path}", "host = db.example",
                   "max-client-queries = 7", "writable = true")
        with Server("--config", self.path, name="config-log", path="",
                    driver="") as server:
            self.assertEqual(server.ask("/stats").status, 401)
            answer = server.ask("/query?format=csv&sql=SELECT+7",
                                host="db.example",
                                Authorization=f"Bearer {TOKEN}")
            self.assertEqual(answer.body, b"7\n7\n")
            about = server.ask("/database", Authorization=f"Bearer {TOKEN}")
            self.assertTrue(about.json()["writable"])
        with Server("--config", self.path, "--writable=false",
                    name="config-log", path="", driver="") as server:
            about = server.ask("/database", Authorization=f"Bearer {TOKEN}")
            self.assertFalse(about.json()["writable"])
        os.remove(path)
        os.remove(token)

    def test_every_option_of_the_help_may_stand_in_a_file(self):
        options = re.findall(r"^  --([a-z-]+)", serve("--help").stdout, re.M)
        self.assertGreater(len(options), 35)
        for option in options:
            if option == "config":
                continue
            self.write(f"{option} = nonsense=1", "and then")
            done = serve("--config", self.path)
            self.assertEqual(done.returncode, 2)
            self.assertNotIn("there is no option", done.stderr, option)
            self.assertRegex(done.stderr, r"\.conf:[12]: ")

    def test_nonsense_is_one_line(self):
        for lines, fault in (
                (["listen"], ":1: no setting; write it as NAME = VALUE"),
                (["", "# x", "nothing = 1"], ":3: there is no option 'nothing'"),
                (["max-head = -1"], ":1: --max-head takes a number from"),
                (["quiet = maybe"], ":1: an option without a value is true or"),
                (["log ="], ":1: there is no value"),
                (["config = x"], ":1: config is for the command line"),
                (["listen = 1.2.3:x"], ":1: '1.2.3:x' is not an address and")):
            self.write(*lines)
            done = serve("--config", self.path, "--driver", "sqlite", "x.db")
            self.assertEqual((done.returncode, done.stdout), (2, ""), lines)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(fault, done.stderr)
        # a file of another kind is not shown
        self.write("a secret that is no setting")
        self.assertNotIn("secret", serve("--config", self.path).stderr)
        done = serve("--config", self.path + ".none")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))
        self.assertIn("cannot open", done.stderr)

    def test_the_log_is_not_written_into_it(self):
        self.write("driver = sqlite", "database = x.db")
        before = os.stat(self.path).st_size
        done = serve("--config", self.path, "--listen", "127.0.0.1:0", "--log",
                     self.path)
        self.assertEqual(done.returncode, 2)
        self.assertIn(self.path, done.stderr)
        self.assertEqual(os.stat(self.path).st_size, before)

    def test_a_file_that_others_can_change_is_warned_of(self):
        path = database("config-mode")
        self.write(f"database = {path}",
                   f"driver = {os.environ['UVA_TEST_DRIVER']}")
        for mode, warned in ((0o644, False), (0o664, True), (0o602, True)):
            os.chmod(self.path, mode)
            server = Server("--config", self.path, name="config-warn", path="",
                            driver="")
            self.assertEqual(server.stop(), 0)
            self.assertEqual(
                "can change " + self.path in "".join(server.errors), warned)
        os.remove(path)


if __name__ == "__main__":
    main()
