#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion of the command in shells, and its man pages: made of its help.
Environment variables as for test_serve_query.py.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from command import PATIENCE, query  # noqa: E402

TOOLS = os.path.join(os.environ["UVA_TEST_SOURCE"], "tools")
COMMANDS = re.findall(r"^  ([a-z]+) ", query(command="--help").stdout, re.M)


def made(name, *words):
    return subprocess.run([os.path.join(TOOLS, name),
                           os.environ["UVA_TEST_TOOL"], *words],
                          capture_output=True, text=True, check=False,
                          timeout=PATIENCE)


def options(command):
    """The options in the help of a command."""
    text = query("--help", command=command).stdout
    return {option for line in re.findall(r"^  (-.*?)(?:  |$)", text, re.M)
            for option in re.findall(r"--[a-z][a-z-]*", line)}


class Bash(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.script = made("completion", "bash").stdout

    def complete(self, *words):
        done = subprocess.run(
            ["/bin/bash", "--norc", "-c", self.script + '''
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_uvarrow
printf '%s\\n' "${COMPREPLY[@]}"''', "bash", "uvarrow", *words],
            capture_output=True, text=True, check=True, timeout=PATIENCE)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_commands_are_completed(self):
        self.assertEqual(self.complete("qu"), ["query"])
        self.assertEqual(set(self.complete("")),
                         {*COMMANDS, "help", "--help", "--version"})

    def test_options_are_those_of_the_help(self):
        for command in COMMANDS:
            with self.subTest(command=command):
                self.assertEqual(set(self.complete(command, "--")) - {"--help"},
                                 options(command) - {"--help"})
        self.assertEqual(self.complete("query", "a.db", "--comp"),
                         ["--compression"])

    def test_values_are_completed(self):
        self.assertEqual(self.complete("query", "--format", "js"),
                         ["json", "json-array"])
        self.assertEqual(self.complete("query", "--compression", "z"), ["zstd"])

    def test_each_value_is_taken(self):
        for option, more in (("--format", ()),
                             ("--compression", ("--format=arrow",))):
            for value in self.complete("query", option, ""):
                done = query(":memory:", "SELECT 1", option, value, *more)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_files_are_left_to_the_shell(self):
        self.assertEqual(self.complete("query", "--output", "x"), [])
        self.assertEqual(self.complete("query", "x"), [])


class OtherShells(unittest.TestCase):
    def assert_complete(self, shell, pattern):
        done = made("completion", shell)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for command in COMMANDS:
            self.assertIn(command, done.stdout)
            for option in options(command):
                self.assertTrue(re.search(pattern.format(option[2:]),
                                          done.stdout), option)
        if shutil.which(shell) is not None:
            subprocess.run([shell, "-n"], input=done.stdout, text=True,
                           check=True, timeout=PATIENCE)

    def test_zsh(self):
        self.assert_complete("zsh", r"'\*--{}\[.*\]")

    def test_fish(self):
        self.assert_complete("fish", r" -l {} -d '.*'")

    def test_another_shell_is_refused(self):
        self.assertEqual(made("completion", "csh").returncode, 2)
        self.assertEqual(made("completion").returncode, 2)


class Pages(unittest.TestCase):
    def test_each_command_has_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            done = made("manpage", "--all", folder)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(set(os.listdir(folder)), {
                "uvarrow.1", *(f"uvarrow-{name}.1" for name in COMMANDS)})
            for name in os.listdir(folder):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    text = file.read().replace("\\-", "-")
                if "-" in name:
                    command = name[8:-2]
                    self.assertIn(f"\nuvarrow-{command} - ", text)
                    self.assertGreaterEqual(
                        set(re.findall(r"--[a-z][a-z-]*", text)),
                        options(command))
                if shutil.which("groff") is not None:
                    done = subprocess.run(
                        ["groff", "-man", "-ww", "-z", "-Tutf8", path],
                        capture_output=True, text=True, check=False,
                        timeout=PATIENCE)
                    self.assertEqual(done.stdout + done.stderr, "", name)

    def test_a_command_that_is_not_there(self):
        self.assertEqual(made("manpage", "nothing").returncode, 1)


if __name__ == "__main__":
    unittest.main()
