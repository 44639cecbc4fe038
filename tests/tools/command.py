# SPDX-License-Identifier: Apache-2.0
"""`uvarrow query` as people start it: with an environment of their own, in a
pipe or on a terminal. Tests wait for events, never for a time.
"""
import fcntl
import os
import pty
import sqlite3
import struct
import subprocess
import termios

PATIENCE = 600  # seconds, after which a test that hangs fails
VENV = os.path.dirname(os.path.dirname(os.environ["UVA_TEST_PYTHON"]))


def folder():
    path = os.path.join(os.environ["UVA_TEST_BUILD"], "query")
    os.makedirs(path, exist_ok=True)
    return path


def path_of(name):
    """The path of a file of this test, which is removed."""
    path = os.path.join(folder(), f"{os.getpid()}-{name}")
    if os.path.exists(path):
        os.remove(path)
    return path


def environment(**variables):
    """That of a person who has the drivers in a virtual environment alone.
    What the build needs to run the command stays."""
    kept = {name: value for name, value in os.environ.items()
            if name.startswith(("ASAN_", "UBSAN_", "LSAN_", "TSAN_", "GCOV_"))}
    return {**kept, "PATH": "/nonexistent", "HOME": "/nonexistent",
            "TERM": "xterm", "LANG": "C.UTF-8", "VIRTUAL_ENV": VENV,
            **variables}


def query(*words, env=None, command="query", **options):
    """Runs the command; its output is text."""
    done = subprocess.run(
        [os.environ["UVA_TEST_TOOL"], command, *words], timeout=PATIENCE,
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
        env=environment() if env is None else env, **options)
    done.stdout = done.stdout.decode("utf-8", "replace")
    done.stderr = done.stderr.decode()
    return done


def sqlite(name, *statements):
    """Makes a database of SQLite; returns its path."""
    path = path_of(name)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


class Terminal:
    """The command on a terminal of its own: its three descriptors, or, with
    `stdout` or `stderr`, the others."""

    def __init__(self, *words, columns=80, env=None, command="query",
                 stdout=None, stderr=None):
        self.ours, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [os.environ["UVA_TEST_TOOL"], command, *words], stdin=other,
            stdout=other if stdout is None else stdout,
            stderr=other if stderr is None else stderr,
            env=environment() if env is None else env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(other, termios.TIOCSCTTY, 0))
        os.close(other)
        self.seen = ""

    def read(self):
        """Reads some more; returns whether there was something."""
        try:
            part = os.read(self.ours, 1 << 16)
        except OSError:  # the other end is closed
            part = b""
        self.seen += part.decode("utf-8", "surrogateescape")
        return part != b""

    def until(self, text):
        """Reads until the text was seen."""
        while text not in self.seen:
            if not self.read():
                raise EOFError(self.seen)

    def press(self, keys):
        os.write(self.ours, keys)

    def end(self):
        """Reads to the end; returns the exit code."""
        while self.read():
            pass
        os.close(self.ours)
        return self.process.wait(PATIENCE)

    def screen(self):
        """The lines that are seen in the end, without those written over."""
        lines = self.seen.replace("\r\n", "\n").split("\n")
        return [line.rsplit("\r\x1b[K", 1)[-1] for line in lines]


def on_terminal(*words, **options):
    """Runs the command on a terminal to its end; returns what is seen then
    without the summary, and the terminal."""
    terminal = Terminal(*words, **options)
    code = terminal.end()
    lines = [line for line in terminal.screen()
             if line and not line.startswith("uvarrow: complete")]
    if code != 0:
        raise AssertionError(f"exit code {code}: {terminal.seen}")
    return lines, terminal
