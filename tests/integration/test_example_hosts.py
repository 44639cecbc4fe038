#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples that host the runtime on loops of other libraries count the rows that
there are, and tell a mistake: on Asio, and on libuv from LuaJIT, in luv and Neovim.
Those whose host is not installed are skipped. The environment is that of
test_examples.py."""
import os
import shutil
import subprocess
import sys
import unittest

import test_examples
from test_examples import PATIENCE, flights

LUA = os.path.join(test_examples.HERE, "..", "..", "examples", "host_lua.lua")


class Hosts(test_examples.Examples):
    def check(self, run):
        """`run(sql)` ends as a host does that reads all rows."""
        result = run("SELECT * FROM flights")
        self.assertEqual((result.returncode, result.stdout),
                         (0, f"{flights.ROWS} rows\n"), result.stderr)
        result = run("SELEC 1")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("syntax error", result.stderr)

    def run_program(self, *command, **options):
        return subprocess.run(command, text=True, capture_output=True,
                              timeout=PATIENCE, check=False, **options)

    def run_lua(self, command, *arguments):
        """Runs a program of LuaJIT, which finds the shared libraries."""
        if shutil.which(command) is None:
            self.skipTest(f"{command} is not installed")
        if os.environ.get("UVA_TEST_SANITIZE"):
            self.skipTest(f"{command} was built without the sanitizer")
        folders = [os.path.join(self.build, "runtime", name) for name in ("", "adbc")]
        if not os.path.exists(os.path.join(folders[1], "libuvarrow-adbc.so")):
            self.skipTest("libuvarrow-adbc.so was not built")
        return self.run_program(command, *arguments, env={
            **os.environ, "LD_LIBRARY_PATH": ":".join(folders)})

    def test_asio_hosts_it(self):
        self.check(lambda sql: self.run_program(*self.command(
            "host_asio", self.driver, "file:" + self.database, sql)))

    def test_luv_hosts_it(self):
        self.check(lambda sql: self.run_lua(
            "luajit", LUA, self.driver, "file:" + self.database, sql))

    def test_neovim_hosts_it(self):
        def run(sql):
            lua = "loadfile([[%s]])([[%s]], [[%s]], [[%s]])" % (
                LUA, self.driver, "file:" + self.database, sql)
            return self.run_lua("nvim", "--headless", "-u", "NONE", "-i", "NONE",
                                "-c", "lua " + lua, "-c", "q")
        self.check(run)


if __name__ == "__main__":
    paths = [os.environ.get("UVA_TEST_" + name, "")
             for name in ("DRIVER", "FLIGHTS", "BUILD")]
    if not all(map(os.path.exists, [*paths, paths[-1] + "/examples"])):
        print("skipped: run scripts/bootstrap and build", __doc__)
        sys.exit(77)
    Hosts.driver, Hosts.zipped, Hosts.build = paths
    unittest.main()
