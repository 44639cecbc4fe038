#!/usr/bin/env python3
"""Tests the command uvarrow tck: its messages and exit codes for files that are
no subjects, and for subjects that crash, hang or break a rule, and the files
it writes.
"""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

TOOL = os.environ.get("UVA_TEST_TOOL")
BUILD = os.environ.get("UVA_TEST_BUILD", "")
SOURCE = os.environ.get("UVA_TEST_SOURCE", ".")
if not TOOL or os.environ.get("UVA_TEST_SANITIZE"):
    sys.exit(77)
MUTANT = os.path.join(BUILD, "tests", "libtck_mutant.so")
EXAMPLE = os.path.join(BUILD, "examples", "libexample_tck_producer.so")

VERSION = "int uva_subject_version(void) { return %s; }\n"
PRODUCE = ("#include <stdlib.h>\n#include <unistd.h>\n"
           "#include \"uvarrow/tck.h\"\n" + VERSION % "UVA_SUBJECT_VERSION" +
           "int uva_subject_produce(int p, int64_t k, int64_t at,\n"
           "    struct ArrowAsyncDeviceStreamHandler *h)\n{\n%s\n}\n")
CONSUME = ("#include <errno.h>\n#include <stdlib.h>\n#include \"uvarrow/tck.h\"\n" +
           VERSION % "UVA_SUBJECT_VERSION" +
           "int uva_subject_report(int64_t id,\n"
           "    struct uva_subject_outcome *o) { return EAGAIN; }\n"
           "int uva_subject_consume(int manner, int64_t k, int64_t *id,\n"
           "    struct ArrowAsyncDeviceStreamHandler **h)\n"
           "{ if (manner > UVA_SUBJECT_HOLDS) abort();\n"
           "  return UVA_SUBJECT_CANNOT; }\n")
KNOWS = ("int uva_subject_knows(int what)\n"
         "{ return what == UVA_SUBJECT_%s ? %s : UVA_SUBJECT_CANNOT; }\n")


class Tck(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def library(self, source):
        """Compiles a shared object."""
        with open(self.path("subject.c"), "w", encoding="utf-8") as file:
            file.write(source)
        subprocess.run(["cc", "-w", "-shared", "-fPIC", "-I",
                        os.path.join(SOURCE, "include"), "-o",
                        self.path("subject.so"), self.path("subject.c")],
                       check=True)
        return self.path("subject.so")

    def tck(self, *args, **env):
        done = subprocess.run([TOOL, "tck", *args], text=True,
                              capture_output=True, check=False,
                              env={**os.environ, **env})
        return done.returncode, done.stdout, done.stderr

    def refused(self, text, *args, **env):
        code, out, err = self.tck(*args, **env)
        self.assertEqual((code, out), (2, ""))
        self.assertIn(text, err)
        self.assertEqual(err.count("\n"), 1, err)

    def test_a_system_that_refuses_is_reported(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (5, 5))
        done = subprocess.run([TOOL, "tck", EXAMPLE], text=True, check=False,
                              capture_output=True, preexec_fn=few_files)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "uvarrow: no process to be had\n")

    def test_the_suite_alone_is_the_same_command(self):
        def alone(*args):
            return subprocess.run([os.path.join(BUILD, "tools", "uvarrow-tck"), *args],
                                  text=True, capture_output=True, check=False)
        self.assertRegex(alone("--version").stdout, r"^uvarrow-tck \d+\.\d+\.\d+\n$")
        said, here = alone("--help"), self.tck("--help")
        self.assertEqual((said.returncode, said.stdout),
                         (0, here[1].replace("uvarrow tck", "uvarrow-tck")))
        self.assertEqual(alone("--list").stdout, self.tck("--list")[1])
        said = alone()
        self.assertEqual((said.returncode, said.stdout, said.stderr), (
            2, "", "uvarrow: no FILE.so was given; see uvarrow-tck --help\n"))

    # ---- bad input -------------------------------------------------------

    def test_a_missing_file_is_named(self):
        self.refused("no.so: No such file", "no.so")

    def test_what_is_no_library_is_refused(self):
        self.refused("cannot be loaded", __file__)

    def test_a_library_without_entry_points_is_refused(self):
        self.refused("exports no uva_subject_version()",
                     self.library("int x;"))

    def test_an_old_version_is_refused(self):
        self.refused("of version 0, not 1", self.library(VERSION % "0"))

    def test_a_library_without_a_role_is_refused(self):
        self.refused("plays no role", self.library(VERSION % "1"))

    def test_a_role_that_is_not_exported_is_refused(self):
        self.refused("does not play that role", EXAMPLE, "--role", "stream")

    def test_a_crash_on_load_is_reported(self):
        self.refused("crashes when it is loaded: Aborted", self.library(
            "#include <stdlib.h>\n"
            "__attribute__((constructor)) void f(void) { abort(); }"))

    def test_an_exit_on_load_is_reported(self):
        self.refused("ends the process when it is loaded", self.library(
            "#include <stdlib.h>\n"
            "__attribute__((constructor)) void f(void) { exit(0); }"))

    def test_a_hang_on_load_is_reported(self):
        self.refused("does not come back", self.library(
            "#include <unistd.h>\n"
            "__attribute__((constructor)) void f(void) { pause(); }"),
                     UVA_TCK_WAIT_MS="100")

    def test_an_unknown_filter_is_refused(self):
        self.refused("no case of this role fits 'AP-99'", EXAMPLE,
                     "--filter", "AP-99")
        self.refused("no case of this role fits", "--list", "--filter", "x-y")

    def test_bad_arguments_are_refused(self):
        self.refused("no FILE.so")
        self.refused("there is no role", EXAMPLE, "--role", "waiter")
        self.refused("there is no option", EXAMPLE, "--roles", "producer")
        self.refused("needs a value", EXAMPLE, "--tap")
        self.refused("more than one", EXAMPLE, EXAMPLE)
        self.refused("not a number", EXAMPLE, UVA_TCK_WAIT_MS="soon")

    def test_a_file_that_cannot_be_written_is_reported(self):
        code, _, err = self.tck(EXAMPLE, "--filter", "AP-02", "--tap",
                                self.path("no/folder"))
        self.assertEqual(code, 2)
        self.assertIn("No such file", err)

    # ---- subjects --------------------------------------------------------

    def test_a_crash_is_a_result_with_its_transcript(self):
        code, out, _ = self.tck(
            self.library(PRODUCE % "abort();"), "--filter", "AP-06")
        self.assertEqual(code, 1)
        self.assertIn("BROKEN  producer required_AP06_never_more_tasks_than_"
                      "requested: it crashed: Aborted", out)
        self.assertIn("-- produce(plan 0, 10, 0)", out)

    def test_no_crash_is_only_weak(self):
        for end, text in (("abort();", "it crashed: Aborted"),
                          ("*(volatile int *)8 = 1;",
                           "it crashed: Segmentation fault"),
                          ("_exit(3);", "it ended the process: exit 3")):
            for name in "recommended_AP09", "optional_AH18":
                code, out, _ = self.tck(
                    self.library(PRODUCE % end), "--filter", name,
                    "--junit", self.path("junit"))
                self.assertEqual(code, 1, out)
                self.assertIn(f"BROKEN  producer {name}_", out)
                self.assertIn(text, out)
                self.assertIn("0 held, 1 required broken, 0 recommended", out)
                suite = xml.parse(self.path("junit")).getroot()
                self.assertEqual(suite.find("testsuite").get("failures"), "1")

    def test_a_hang_is_a_result(self):
        code, out, _ = self.tck(
            self.library(PRODUCE % "pause(); return 0;"), "--filter", "AP-06",
            UVA_TCK_WAIT_MS="100")
        self.assertEqual(code, 1)
        self.assertIn("did not come within 100 ms", out)

    def test_what_a_subject_prints_is_kept_for_its_case(self):
        code, out, _ = self.tck(
            self.library(PRODUCE % 'write(1, "so long\\n", 8); exit(3);'),
            "--filter", "AP-06")
        self.assertEqual(code, 1)
        self.assertIn("it ended the process: exit 3", out)
        self.assertIn("| so long", out)

    def test_a_refusal_of_what_always_goes_is_a_result(self):
        code, out, _ = self.tck(self.library(PRODUCE % "return -1;"),
                                "--filter", "AP-02")
        self.assertEqual(code, 1)
        self.assertIn("uva_subject_produce() returned -1, UVA_SUBJECT_CANNOT", out)

    # ---- plans and manners that a subject does not know -----------------

    def skips(self, name, source):
        """Returns whether the only case of the name is skipped; otherwise it
        must have crashed."""
        code, out, _ = self.tck(self.library(source), "--filter", name)
        if code == 0:
            self.assertIn("\n0 held, 0 required broken, 0 recommended broken, "
                          "1 skipped", out)
        else:
            self.assertIn("it crashed: Aborted", out)
        return code == 0

    def test_a_manner_is_used_only_if_the_subject_knows_it(self):
        waits = "AT21_tasks_that_wait"          # HOLDS_AND_CANCELS
        bare = "nothing_is_left_of_a_stream"    # TAKES_BARE
        for last, skipped in (
                ("", [True, True]),
                (KNOWS % ("PLANS", "99"), [True, True]),
                (KNOWS % ("MANNERS", "UVA_SUBJECT_HOLDS"), [True, True]),
                (KNOWS % ("MANNERS", "UVA_SUBJECT_HOLDS_AND_CANCELS"),
                 [False, True]),
                (KNOWS % ("MANNERS", "UVA_SUBJECT_TAKES_BARE"),
                 [False, False])):
            self.assertEqual([self.skips(name, CONSUME + last)
                              for name in (waits, bare)], skipped, last)

    def test_a_plan_is_used_only_if_the_subject_knows_it(self):
        produce = PRODUCE % "if (p > 1) abort(); return -1;"
        for last, skipped in (
                ("", False), (KNOWS % ("MANNERS", "0"), False),
                (KNOWS % ("PLANS", "UVA_SUBJECT_FAILS"), False),
                (KNOWS % ("PLANS", "UVA_SUBJECT_SLOW"), True)):
            self.assertEqual(
                self.skips("AP26_batches_come", produce + last), skipped, last)

    def test_a_stream_is_asked_for_no_unknown_plan(self):
        stream = ("#include <stdlib.h>\n#include \"uvarrow/tck.h\"\n" +
                  VERSION % "UVA_SUBJECT_VERSION" +
                  "int uva_subject_open(int p, int64_t k, int64_t at,\n"
                  "    struct ArrowDeviceArrayStream *out) { abort(); }\n")
        name = "DS02_batches_come"              # FAILS
        self.assertFalse(self.skips(name, stream))
        self.assertTrue(self.skips(
            name, stream + KNOWS % ("PLANS", "UVA_SUBJECT_WHOLE")))

    # ---- breaches in cases about other clauses ---------------------------

    def test_a_breach_in_any_case_fails_the_run(self):
        code, out, _ = self.tck(
            MUTANT, "--role", "producer", "--filter", "AP06_never", "--tap",
            self.path("tap"), "--junit", self.path("junit"),
            UVA_SUBJECT_MUTANT="DA-08")
        self.assertEqual(code, 1)
        self.assertIn("ok      producer required_AP06_never_more", out)
        self.assertIn("BROKEN  producer required_DA08_is_kept_in_all_cases: "
                      "DA-08: ", out)
        self.assertIn("(seen in required_AP06_never_more_tasks_than_requested)",
                      out)
        self.assertRegex(out, r"!! DA-08 broken: .*\n\n1 held, 1 required")
        with open(self.path("tap"), encoding="utf-8") as file:
            self.assertIn("\nnot ok 2 - producer required_DA08_is_kept",
                          file.read())
        suite = xml.parse(self.path("junit")).getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures")),
                         ("2", "1"))

    def test_a_breach_is_reported_once_if_its_own_case_fails(self):
        code, out, _ = self.tck(MUTANT, "--role", "stream", "--filter", "DA",
                                UVA_SUBJECT_MUTANT="DA-08")
        self.assertEqual(code, 1)
        self.assertIn("BROKEN  stream   required_DA08_reserved", out)
        self.assertNotIn("in_all_cases", out)

    def test_what_does_not_hold_is_told_again_at_the_end(self):
        code, out, _ = self.tck(MUTANT, "--role", "stream",
                                UVA_SUBJECT_MUTANT="DA-08")
        self.assertEqual(code, 1)
        end = out.rpartition("\nDoes not hold:\n")[2].splitlines()
        first = [line.split(maxsplit=1)[1] for line in out.splitlines()
                 if line.startswith(("BROKEN", "weak"))]
        self.assertEqual([line.strip() for line in end], first)
        self.assertIn("DA08", end[0])

    def test_the_cases_with_a_breach_are_counted(self):
        code, out, _ = self.tck(MUTANT, "--role", "producer", "--filter",
                                "AT1", UVA_SUBJECT_MUTANT="DA-08")
        self.assertEqual(code, 1)
        self.assertRegex(out, r"DA08_is_kept.*\(seen in \w+ and \d+ more\)")

    def test_a_breach_of_what_is_recommended_does_not_fail_the_run(self):
        code, out, _ = self.tck(MUTANT, "--role", "producer", "--filter",
                                "AP06_never", UVA_SUBJECT_MUTANT="DA-05")
        self.assertEqual(code, 0)
        self.assertIn("weak    producer recommended_DA05_is_kept_in_all_cases",
                      out)
        self.assertIn("1 held, 0 required broken, 1 recommended broken", out)

    def test_an_early_error_without_a_producer_is_only_weak(self):
        code, out, _ = self.tck(MUTANT, "--role", "producer", "--filter",
                                "optional_AH18",
                                UVA_SUBJECT_MUTANT="AH-03.error")
        self.assertEqual(code, 0)
        self.assertIn("weak    producer recommended_AH03_is_kept", out)

    def test_what_is_only_recommended_of_a_required_clause_is_only_weak(self):
        code, out, _ = self.tck(MUTANT, "--role", "producer", "--filter",
                                "DA22", UVA_SUBJECT_MUTANT="DA-22.unknown")
        self.assertEqual(code, 0)
        self.assertIn("ok      producer required_DA22", out)
        self.assertIn("weak    producer recommended_DA22_is_kept", out)

    # ---- results ---------------------------------------------------------

    def test_a_lost_array_is_blamed_on_its_device_only_if_that_is_unknown(self):
        for mutant, verdict in ("LC-22.later", "ok"), ("LC-22.loses", "BROKEN"):
            code, out, _ = self.tck(MUTANT, "--role", "handler", "--filter",
                                    "AB15", UVA_SUBJECT_MUTANT=mutant)
            self.assertEqual(code, 1)  # LC-22 is broken in it
            self.assertRegex(out, verdict + " +handler +required_AB15_")
            self.assertIn("required_LC22_is_kept_in_all_cases", out)

    def test_results_are_written_as_tap_and_junit(self):
        code, out, _ = self.tck(
            self.library(PRODUCE % "write(2, \"<&>\\1\", 4); return 5;"),
            "--filter", "AP0", "--tap", self.path("tap"), "--junit",
            self.path("junit"))
        self.assertEqual(code, 1)
        with open(self.path("tap"), encoding="utf-8") as file:
            tap = file.read().splitlines()
        count = out.count("BROKEN") + out.count("weak ") + out.count("skip ")
        self.assertEqual(tap[:2], ["TAP version 14", f"1..{count}"])
        self.assertTrue(any(line.endswith("# TODO only recommended")
                            for line in tap))
        suite = xml.parse(self.path("junit")).getroot().find("testsuite")
        self.assertEqual(suite.get("tests"), str(count))
        self.assertEqual(int(suite.get("failures")), out.count("BROKEN"))
        self.assertEqual(len(suite.findall("testcase")), count)

    def test_the_list_has_every_clause_of_the_catalogue(self):
        code, out, _ = self.tck("--list")
        self.assertEqual(code, 0)
        names = [line.split()[1].rstrip(":") for line in out.splitlines()]
        listed = {f"{n.split('_')[1][:2]}-{n.split('_')[1][2:]}"
                  for n in names}
        with open(os.path.join(SOURCE, "runtime/protocol/clauses.h"),
                  encoding="utf-8") as file:
            text = file.read()
        known = {word for word in text.replace('"', " ").split()
                 if len(word) == 5 and word[2] == "-" and word[3:].isdigit()
                 and word[:2].isupper()}
        self.assertGreater(len(known), 150)
        self.assertEqual(known - listed, set())

    def test_the_filter_takes_a_clause_or_a_part_of_a_name(self):
        for text in ("AP-07", "ap07", "AP07_a_request_after"):
            code, out, _ = self.tck(EXAMPLE, "--filter", text)
            self.assertEqual(code, 0)
            self.assertIn("\n1 held, 0 required broken", out)


if __name__ == "__main__":
    unittest.main()
