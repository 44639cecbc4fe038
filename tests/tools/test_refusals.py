#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command where the system refuses threads, descriptors or memory: it ends
by itself with a text, and a server that runs answers. It never ends by a
signal, as libuv has it where its threads or its first loop cannot be had.
Environment variables as for test_serve_query.py.
"""
import ctypes
import os
import platform
import resource
import signal
import struct
import subprocess
import sys
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import PATIENCE, Client, Server, database, folder, main  # noqa: E402

USER = 54321  # no other process runs as it
DESCRIPTORS = range(3, 65)
MEBIBYTES = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256)
CALLS = {"x86_64": (56, 435), "aarch64": (220, 435)}  # clone(), clone3()


class Filter(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("lines", ctypes.c_char_p)]


def refuse_threads():
    """Has the system refuse threads: clone3() is not there, and clone() with
    CLONE_THREAD gives EAGAIN. For root, too, and for the programs it runs."""
    clone, clone3 = CALLS[platform.machine()]
    lines = ((0x20, 0, 0, 0), (0x15, 3, 0, clone3), (0x15, 0, 4, clone),
             (0x20, 0, 0, 16), (0x45, 1, 2, 0x10000),
             (6, 0, 0, 0x50000 | 38), (6, 0, 0, 0x50000 | 11),
             (6, 0, 0, 0x7fff0000))
    code = b"".join(struct.pack("HBBI", *line) for line in lines)
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(38, 1, 0, 0, 0) != 0 or
            libc.prctl(22, 2, ctypes.byref(Filter(len(lines), code))) != 0):
        raise OSError(ctypes.get_errno(), "no filter")


def limit(kind, value):
    return lambda: resource.setrlimit(kind, (value, value))


def as_user(threads):
    def begin():
        resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
    return begin


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = database("refusals")
        cls.out = os.path.join(folder(), f"refusals-{os.getpid()}.out")

    @classmethod
    def tearDownClass(cls):
        for path in (cls.path, cls.out):
            if os.path.exists(path):
                os.remove(path)

    def run_query(self, begin, *arguments, pipe=False):
        if not arguments:
            arguments = ("--driver", os.environ["UVA_TEST_DRIVER"], self.path,
                         "SELECT * FROM numbers")
        command = [os.environ["UVA_TEST_TOOL"], "query", *arguments]
        with open(self.out, "wb") as file:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, preexec_fn=begin,
                stdout=subprocess.PIPE if pipe else file, check=False,
                stderr=subprocess.PIPE, timeout=PATIENCE)
        if os.environ.get("UVA_TEST_COUNTED") == "ON" and \
                done.returncode == -signal.SIGSEGV:
            return done  # gcov takes memory at the exit, and does not look
        self.assertGreaterEqual(done.returncode, 0, done.stderr)
        if done.returncode != 0:
            self.assertNotEqual(done.stderr, b"")
        return done

    def check_server(self, begin, *options):
        """Returns whether it listened, and the status of a query."""
        try:
            server = Server(*options, path=self.path, begin=begin)
        except RuntimeError as error:
            self.assertNotEqual(str(error), "")
            self.assertGreater(error.code, 0, error)
            return False, 0
        with server:
            health = server.ask("/health")
            answer = server.ask("/query?sql=" + quote("SELECT 1 AS one"))
            if health is None or answer is None:
                return True, 0
            self.assertIn(health.status, (200, 503))
            if answer.status != 200:
                self.assertEqual(answer.status, 503, answer.body)
                self.assertEqual(answer.headers["retry-after"], "1")
        return True, answer.status

    def test_threads_that_are_refused_are_an_error(self):
        if platform.machine() not in CALLS:
            self.skipTest("no filter for this processor")
        for pipe in (False, True):
            done = self.run_query(refuse_threads, pipe=pipe)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(b"thread", done.stderr)
        done = self.run_query(refuse_threads, "--from",
                              "http://localhost:9/query", "SELECT 1", pipe=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"thread", done.stderr)

    def test_a_server_without_threads_says_so(self):
        if platform.machine() not in CALLS:
            self.skipTest("no filter for this processor")
        listened, _ = self.check_server(refuse_threads)
        self.assertFalse(listened)
        listened, status = self.check_server(refuse_threads, "--quiet")
        self.assertIn((listened, status), ((False, 0), (True, 503)))
        listened, status = self.check_server(None)
        self.assertEqual((listened, status), (True, 200))

    def test_few_threads_are_an_error_or_enough(self):
        if os.getuid() != 0:
            self.skipTest("only root can become another user")
        try:
            self.run_query(as_user(100))
        except PermissionError:
            self.skipTest("the other user may not run it")
        os.chmod(self.path, 0o644)
        codes = [self.run_query(as_user(count)).returncode
                 for count in range(1, 12)]
        self.assertEqual(codes[0], 2)
        self.assertEqual(codes[-1], 0)

    def test_few_descriptors_are_an_error_or_enough(self):
        for count in DESCRIPTORS:
            begin = limit(resource.RLIMIT_NOFILE, count)
            for pipe in (False, True):
                done = self.run_query(begin, pipe=pipe)
            self.run_query(begin, "--from", "http://127.0.0.1:9/query",
                           "SELECT 1", pipe=True)
        self.assertEqual(done.returncode, 0)

    def test_a_server_with_few_descriptors_answers_or_ends(self):
        for count in DESCRIPTORS:
            with self.subTest(count):
                listened, _ = self.check_server(
                    limit(resource.RLIMIT_NOFILE, count))
        self.assertTrue(listened)

    def test_little_memory_is_an_error_or_enough(self):
        if self.run_query(limit(resource.RLIMIT_AS, 1 << 33)).returncode != 0:
            self.skipTest("built with a sanitizer")
        for size in MEBIBYTES:
            begin = limit(resource.RLIMIT_AS, size << 20)
            for pipe in (False, True):
                self.run_query(begin, pipe=pipe)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
