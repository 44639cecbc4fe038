#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `uvarrow timeline`: the page that it writes, and the files that
it refuses.

Environment variables give the paths: UVA_TEST_TOOL the command, UVA_TEST_BUILD
a folder for files.
"""
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from made_trace import made  # noqa: E402

PATIENCE = 600  # seconds


class Timeline(unittest.TestCase):
    uvarrow = folder = None

    @classmethod
    def setUpClass(cls):
        os.makedirs(cls.folder, exist_ok=True)

    def path(self, text):
        """Returns the path of a file with that text."""
        path = os.path.join(self.folder, "trace.json")
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def run_timeline(self, *args, **how):
        return subprocess.run([self.uvarrow, "timeline", *args],
                              stderr=subprocess.PIPE, timeout=PATIENCE,
                              **{"stdout": subprocess.PIPE, **how})

    def page_of(self, text):
        result = self.run_timeline(self.path(text))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def assert_refused(self, result, code, part):
        text = result.stderr.decode()
        self.assertEqual(result.returncode, code, text)
        self.assertEqual(result.stdout or b"", b"")
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("uvarrow: "), text)
        self.assertIn(part, text)


class ThePage(Timeline):
    def test_the_events_are_those_of_the_file(self):
        trace = made(20, "a </script> <!-- \u2028 ä🚀 & 'b' \\\" #1")
        page = self.page_of(trace.text())
        data = re.search(r'<script type="application/json" id="events">(.*?)'
                         r"</script>", page, re.S)[1]
        self.assertNotIn("<", data)
        self.assertEqual(json.loads(data), trace.events)

    def test_the_policy_names_the_script_and_the_style(self):
        page = self.page_of(made(1).text())
        policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
        for kind, part in (("script-src", r"<script>(.*?)</script>"),
                           ("style-src", r"<style>(.*?)</style>")):
            text = re.search(part, page, re.S)[1]
            digest = hashlib.sha256(text.encode()).digest()
            self.assertIn(f"{kind} 'sha256-"
                          f"{base64.b64encode(digest).decode()}'", policy)
        self.assertTrue(policy.startswith("default-src 'none';"))
        self.assertNotIn("unsafe", policy)

    def test_it_names_no_address_but_its_parts(self):
        page = self.page_of(made(1).text())
        self.assertEqual(re.findall(r"https?://[^\s\"')]+", page), [])
        self.assertNotIn("@SCRIPT", page)
        self.assertNotIn("@STYLE", page)
        self.assertNotIn("@EVENTS", page)

    def test_a_pipe_is_read_like_a_file(self):
        trace = made(2000)
        result = self.run_timeline("/dev/stdin", input=trace.text().encode())
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertIn(b'"batch": 1999', result.stdout)

    def test_a_file_without_its_bracket_is_shown(self):
        for cut in (3, 4, 10, 40):
            text = made(20).text()[:-cut]
            result = self.run_timeline(self.path(text))
            self.assertEqual(result.returncode, 0)
            self.assertIn(b"ends before its closing bracket", result.stderr)


class BadInput(Timeline):
    def test_what_is_no_trace_is_refused(self):
        for text, part in (("", "the text ends in line 1"),
                           ("carrier,flights\nAA,12\n", "line 1: expected ["),
                           ('[{"a":1},\n{"a":}]', "line 2: expected a value"),
                           ("{}", "is not a trace"), ('{"a":[]}', "traceEvents"),
                           ("[]", "has no events"), ("[1,2]", "is an object"),
                           ("[{}] more", "nothing behind the trace"),
                           (b"\x1f\x8b\x08\0\0\0", "line 1: expected ["),
                           ("[" * 1000, "an event, which is an object")):
            self.assert_refused(self.run_timeline(self.path(text)), 2, part)

    def test_what_cannot_be_read_is_refused(self):
        self.assert_refused(self.run_timeline("/no/such.json"), 2,
                            "cannot open /no/such.json: No such file")
        self.assert_refused(self.run_timeline(self.folder), 2,
                            "Is a directory")

    def test_a_mistake_on_the_command_line_is_refused(self):
        self.assert_refused(self.run_timeline(), 2, "give one file")
        self.assert_refused(self.run_timeline("a", "b"), 2, "give one file")
        self.assert_refused(self.run_timeline("--quick"), 2,
                            "there is no option '--quick'")

    def test_a_page_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            result = self.run_timeline(self.path(made(9).text()), stdout=full)
        self.assert_refused(result, 1, "cannot write the page: No space left")

    def test_help_explains_it(self):
        for option in ("--help", "-h"):
            result = self.run_timeline(option)
            self.assertEqual(result.returncode, 0)
            self.assertIn(b"Usage: uvarrow timeline FILE", result.stdout)


if __name__ == "__main__":
    Timeline.uvarrow = os.environ.get("UVA_TEST_TOOL", "")
    build = os.environ.get("UVA_TEST_BUILD", "")
    if not os.path.exists(Timeline.uvarrow):
        print("skipped: UVA_TEST_TOOL is not there; build it", __doc__)
        sys.exit(77)
    Timeline.folder = os.path.join(build, "test_timeline_tool")
    unittest.main()
