#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion of the command in shells, and its man pages: made of its help.
Environment variables as for test_serve_query.py.
"""
import os
import pty
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


# compadd adds the words of a completion: here it writes them to a file, too.
ZSH = r"""
PROMPT=
fpath=({folder} $fpath)
autoload -Uz compinit && compinit -u -D
zstyle ':completion:*' completer _complete
compadd() {{
    if [[ ${{@[1,(i)(-|--)]}} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a offered
    builtin compadd -A offered "$@"
    print -rl -- $offered >>{folder}/words
    builtin compadd "$@"
}}
offer() {{
    zle list-choices
    zle kill-whole-line
    print -r "the ""end"
}}
zle -N offer
bindkey '^T' offer
print "the ""start"
"""


class Zsh:
    """A shell, which is asked what it offers at the end of a line."""

    def __init__(self):
        self.place = tempfile.TemporaryDirectory()
        self.folder = self.place.name
        self.write("_uvarrow", made("completion", "zsh").stdout)
        self.write(".zshrc", ZSH.format(folder=self.folder))
        self.typed = Typed("zsh", "-i", folder=self.folder)
        self.typed.wait("the start")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w",
                  encoding="utf-8") as file:
            file.write(text)

    def offers(self, line):
        self.write("words", "")
        self.typed.type(line + "\x14")
        self.typed.wait("the end")
        with open(os.path.join(self.folder, "words"), encoding="utf-8") as file:
            return set(file.read().split("\n")) - {""}

    def close(self):
        self.typed.close()
        self.place.cleanup()


class Fish:
    def __init__(self):
        self.place = tempfile.TemporaryDirectory()
        self.script = made("completion", "fish").stdout

    def offers(self, line):
        done = subprocess.run(
            ["fish", "--no-config", "-c", "source -; complete -C $argv[1]",
             line], input=self.script, text=True, capture_output=True,
            check=True, timeout=PATIENCE, cwd=self.place.name,
            env={**os.environ, "HOME": self.place.name})
        if done.stderr:
            raise AssertionError(done.stderr)
        return {text.split("\t")[0] for text in done.stdout.splitlines()}

    def close(self):
        self.place.cleanup()


class Typed:
    """A program on a terminal, in a folder that is its home, too."""

    def __init__(self, *words, folder):
        self.ours, other = pty.openpty()
        self.process = subprocess.Popen(
            words, stdin=other, stdout=other, stderr=other, cwd=folder,
            start_new_session=True, env={
                **os.environ, "HOME": folder, "ZDOTDIR": folder,
                "TERM": "xterm"})
        os.close(other)
        self.seen = ""

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def type(self, text):
        os.write(self.ours, text.encode())

    def wait(self, text):
        """Reads up to a text."""
        while text not in self.seen:
            self.seen += os.read(self.ours, 65536).decode("utf-8", "replace")
        self.seen = self.seen.split(text, 1)[1]


class Offered:
    SHELL = None

    @classmethod
    def setUpClass(cls):
        name = cls.SHELL.__name__.lower()
        if shutil.which(name) is None:
            raise unittest.SkipTest(f"there is no {name}")
        cls.shell = cls.SHELL()

    @classmethod
    def tearDownClass(cls):
        cls.shell.close()

    def test_commands(self):
        self.assertEqual(self.shell.offers("uvarrow "), {*COMMANDS})
        self.assertEqual(self.shell.offers("uvarrow qu"), {"query"})

    def test_options_of_each_command(self):
        for command in COMMANDS:
            self.assertEqual(self.shell.offers(f"uvarrow {command} --"),
                             options(command), command)

    def test_values(self):
        self.assertEqual(self.shell.offers("uvarrow query --compression "),
                         {"none", "lz4", "zstd"})
        self.assertEqual(self.shell.offers("uvarrow query a.db --format j"),
                         {"json", "json-array"})


class OfferedByZsh(Offered, unittest.TestCase):
    SHELL = Zsh


class OfferedByFish(Offered, unittest.TestCase):
    SHELL = Fish


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
