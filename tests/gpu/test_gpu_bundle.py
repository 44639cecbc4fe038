#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPU bundle runs in a root that has only glibc, the doubles and an empty
/tmp, and the outcome is in its reports, in its exit code, and in the documents
that scripts/gpu_report writes. The bundle is made of the present build, with
few of its programs.

Where no root can be changed, the bundle runs in the root that is here.
UVA_TEST_BUILD in the environment is the folder of the build.
"""
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("UVA_TEST_BUILD", os.path.join(ROOT, "build", "test"))
TESTS = ("gpu/test_cuda_copies", "gpu/test_cuda_green_contexts",
         "gpu/test_hip_thread", "gpu/gpu_to_host")
DOUBLES = ("fakecuda", "fakehip")
PATIENCE = 600 # seconds, only for a bundle that hangs


def can_unshare():
    return subprocess.run(["unshare", "--map-root-user", "true"],
                          capture_output=True).returncode == 0


def entering(root):
    """The command in front of a program that runs in `root`, or None."""
    if os.geteuid() == 0:
        return ["chroot", root]
    if shutil.which("unshare") and can_unshare():
        return ["unshare", "--map-root-user", f"--root={root}"]
    return None


def system_libraries(program):
    """The files of glibc that a program needs here, its loader first"""
    text = subprocess.run(["ldd", program], check=True, capture_output=True,
                          text=True).stdout
    return re.findall(r"(/\S*/(?:ld-linux\S*|libc\.so\.6|libm\.so\.6))", text)


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.root = os.path.join(cls.temporary.name, "root")
        cls.made = os.path.join(cls.root, "bundle")
        os.mkdir(cls.root)
        for folder in ("out", "tmp"): # Check keeps a file in the latter
            os.mkdir(os.path.join(cls.root, folder))
        only = "|".join((*TESTS, "^devices$", "^measure$", "^bench/cuda_1$"))
        cls.said = subprocess.run(
            [os.path.join(ROOT, "scripts", "gpu_bundle"), "--from", BUILD,
             "--only", only, cls.made], check=True, capture_output=True,
            text=True).stdout
        for name in DOUBLES:
            shutil.copy(os.path.join(BUILD, "tests", "devices",
                                     f"lib{name}.so"), cls.root)
        for path in system_libraries(os.path.join(BUILD, "tests", "devices",
                                                  "test_cuda")):
            target = cls.root + path
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(path, target)
        with open(os.path.join(cls.made, "plan"), encoding="utf-8") as plan:
            cls.plan = plan.read().replace(
                "\t--scale\t0.2\t--apart",
                "\t--batches\t2\t--only\tcuda/to-host")
        cls.enter = entering(cls.root)
        if cls.enter is None:
            print("the root cannot be changed here; this one is used",
                  file=sys.stderr)
        cls.whole = cls.run_bundle()
        cls.whole_report = cls.report()

    @classmethod
    def run_bundle(cls, *arguments, plan=None, with_devices=True):
        """Returns the output, and the exit code."""
        with open(os.path.join(cls.made, "plan"), "w",
                  encoding="utf-8") as file:
            file.write(plan or cls.plan)
        at = "" if cls.enter else cls.root
        doubles = {f"UVA_{name[4:].upper()}_LIBRARY":
                   f"{at}/lib{name}.so" if with_devices else f"{at}/none.so"
                   for name in DOUBLES}
        done = subprocess.run(
            [*(cls.enter or []), f"{at}/bundle/run", *arguments, "--out",
             f"{at}/out"], capture_output=True, text=True, timeout=PATIENCE,
            env={"PATH": os.environ["PATH"], # in place of /proc
                 "LD_ORIGIN_PATH": f"{at}/bundle/bin", **doubles})
        return done.stdout + done.stderr, done.returncode

    @classmethod
    def report(cls, name="report.json"):
        with open(os.path.join(cls.root, "out", name),
                  encoding="utf-8") as file:
            return json.load(file)

    def results(self, name="report.json"):
        return {program["name"]: program["result"]
                for program in self.report(name)["programs"]}

    # ---- the runner ---------------------------------------------------------

    def test_a_bundle_has_all_that_its_programs_need(self):
        self.assertRegex(self.said, r"[\d.]+ MiB\n$")
        self.assertIn("libuv.so.1", os.listdir(os.path.join(self.made, "lib")))
        if self.enter:
            self.assertFalse(os.path.exists(os.path.join(self.root, "bin")))

    def test_both_parts_run_with_the_doubles(self):
        said, code = self.whole
        self.assertEqual(code, 0, said)
        report = self.whole_report
        results = {program["name"]: program["result"]
                   for program in report["programs"]}
        self.assertEqual({results[name] for name in TESTS}, {"passed"})
        self.assertEqual(report["parts"], [1, 2])
        self.assertIn(["cuda", "double", "yes"], report["facts"])
        self.assertIn(["cuda", "library", "/libfakecuda.so"
                       if self.enter else f"{self.root}/libfakecuda.so"],
                      report["facts"])
        self.assertIn(("cuda/to-host/uvarrow", "GB/s"),
                      {(name, unit) for name, _, unit in report["figures"]})
        devices = next(program for program in report["programs"]
                       if program["name"] == "devices")
        self.assertRegex(devices["output"], r"CUDA +yes")
        if self.enter: # missing information fails no test
            self.assertEqual(results["measure"], "failed")
        with open(os.path.join(self.root, "out", "report.txt"),
                  encoding="utf-8") as text:
            self.assertIn("\ntests passed: 4\n", text.read())

    def test_a_part_has_a_report_of_its_own(self):
        _, code = self.run_bundle("1")
        self.assertEqual(code, 0)
        self.assertEqual(self.report("report-1.json")["parts"], [1])
        self.assertNotIn("bench/cuda_1", self.results("report-1.json"))
        _, code = self.run_bundle("2")
        self.assertEqual(code, 0)
        self.assertEqual({*self.results("report-2.json")},
                         {"facts_2", "measure", "bench/cuda_1"})

    def test_without_a_device_no_test_has_passed(self):
        _, code = self.run_bundle("1", with_devices=False)
        self.assertEqual(code, 1)
        results = self.results("report-1.json")
        self.assertEqual({results[name] for name in TESTS}, {"skipped"})
        self.assertTrue([fact for fact in self.report("report-1.json")["facts"]
                         if fact[:2] == ["cuda", "missing"]])

    def odd_plan(self, way):
        """One test of the plan, and a program that ends in that way"""
        shutil.copy(os.path.join(BUILD, "tests", "gpu", "gpu_odd_program"),
                    os.path.join(self.made, "bin"))
        first = [line for line in self.plan.splitlines(keepends=True)
                 if TESTS[0] in line]
        return first[0] + "\t".join(
            ("1", "test", "1", "gpu/odd", "ODD=yes", "--",
             "bin/gpu_odd_program", way)) + "\n"

    def test_a_program_that_ends_badly_fails_the_run(self):
        for way, result, code in (("fail", "failed", 3), ("crash", "failed",
                                  134), ("hang", "timed out", 124)):
            with self.subTest(way):
                said, status = self.run_bundle("1", plan=self.odd_plan(way))
                self.assertEqual(status, 1)
                self.assertRegex(said, f"{result} .*gpu/odd")
                odd = self.report("report-1.json")["programs"][-1]
                self.assertEqual((odd["name"], odd["result"], odd["code"]),
                                 ("gpu/odd", result, code))
                self.assertIn(f'line 40 of "{way}"\\\t\x01?', odd["output"])
                self.assertNotIn("line 5 of", odd["output"])
                results = self.results("report-1.json")
                self.assertEqual(results[TESTS[0]], "passed")

    def test_what_a_part_has_no_time_for_is_left_out(self):
        odd = self.odd_plan("hang").splitlines(keepends=True)[-1]
        _, code = self.run_bundle("1", "--seconds", "1.5", plan=odd.replace(
            "\t1\tgpu", "\t60\tgpu") + self.plan)
        self.assertEqual(code, 1)
        results = self.results("report-1.json")
        self.assertEqual(results.pop("gpu/odd"), "timed out")
        self.assertEqual({*results.values()}, {"no time left"})

    def test_information_may_be_missing_but_not_crash(self):
        for way, status in (("fail", 0), ("crash", 1)):
            plan = self.odd_plan(way).replace("test\t1\tgpu/odd",
                                              "info\t1\tgpu/odd")
            _, code = self.run_bundle("1", plan=plan)
            self.assertEqual(code, status)

    def test_a_suite_without_its_case_has_not_passed(self):
        plan = self.plan.replace("CK_RUN_CASE=copies", "CK_RUN_CASE=none")
        _, code = self.run_bundle("1", plan=plan)
        self.assertEqual(code, 0)
        results = self.results("report-1.json")
        self.assertEqual(results["gpu/test_cuda_copies"], "skipped")

    def test_what_cannot_be_run_is_said(self):
        for plan in ("1\ttest\n", "3\ttest\t1\tx\t--\tbin/x\n",
                     "1\ttest\t1\tx\tbin/x\n"):
            said, code = self.run_bundle("1", plan=plan)
            self.assertEqual(code, 2)
            self.assertIn("program 1 is not as in plan.h", said)
        said, code = self.run_bundle("3")
        self.assertEqual(code, 2)
        self.assertIn("usage", said)
        _, code = self.run_bundle("1", plan=self.plan.replace(
            "bin/test_cuda", "bin/nothing"))
        self.assertEqual(code, 1)
        self.assertEqual(self.results("report-1.json")[TESTS[0]], "failed")

    # ---- the documents ------------------------------------------------------

    def documents(self, *reports):
        """The output of gpu_report for reports: both pages, and its exit
        code"""
        folder = tempfile.mkdtemp(dir=self.temporary.name)
        paths = []
        for number, report in enumerate(reports):
            paths.append(os.path.join(folder, f"{number}.json"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                json.dump(report, file)
        for page in ("devices.md", "benchmarks.md"):
            shutil.copy(os.path.join(ROOT, "docs", page), folder)
        done = subprocess.run(
            [sys.executable, os.path.join(ROOT, "scripts", "gpu_report"),
             "--docs", folder, *paths], capture_output=True, text=True)
        texts = []
        for page in ("devices.md", "benchmarks.md"):
            with open(os.path.join(folder, page), encoding="utf-8") as file:
                texts.append(file.read())
        return (*texts, done)

    def real(self):
        """A report of a device that is no double"""
        report = copy.deepcopy(self.whole_report)
        report["facts"] = [["cuda", "version", "13.0"],
                           ["cuda", "device", "Tester 9000"],
                           ["hip", "missing", "no library"]]
        for program in report["programs"]:
            if program["name"] == "gpu/test_hip_thread":
                program["result"] = "skipped"
        return report

    def row(self, page, begin):
        rows = [line for line in page.splitlines()
                if line.startswith(f"| {begin}")]
        self.assertEqual(len(rows), 1)
        return rows[0].split(" | ")[-1].strip(" |")

    def test_what_a_double_did_was_not_seen_on_hardware(self):
        devices, benchmarks, done = self.documents(self.whole_report)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("no hardware", done.stdout)
        for page, name in ((devices, "devices.md"),
                           (benchmarks, "benchmarks.md")):
            with open(os.path.join(ROOT, "docs", name),
                      encoding="utf-8") as file:
                self.assertTrue(page == file.read(), name)

    def test_what_a_device_did_is_in_the_tables(self):
        green = "CUDA | a green context"
        report = self.real()
        devices, benchmarks, done = self.documents(report)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.row(devices, green),
                         "yes: Tester 9000, CUDA 13.0")
        self.assertEqual(self.row(devices, "CUDA | in relaxed mode"), "no")
        self.assertEqual(self.row(devices, "HIP | `hipEventQuery`"), "no")
        section = benchmarks.split("<!-- scripts/gpu_report: begin -->")[1]
        self.assertTrue("### Tester 9000" in section)
        self.assertRegex(section, r"\| `cuda/to-host/hand` \| [\d.,]+ GB/s")
        self.assertTrue("| CUDA to the host, 64 MiB a batch" in section)
        for program in report["programs"]:
            if program["name"].endswith("green_contexts"):
                program["result"] = "timed out"
        devices, _, done = self.documents(report)
        self.assertEqual(done.returncode, 1)
        self.assertIn("test_cuda_green_contexts: timed out", done.stderr)
        self.assertEqual(self.row(devices, green),
                         "no: `test_cuda_green_contexts` timed out on Tester "
                         "9000")

    def test_reports_of_two_parts_are_one(self):
        parts = [self.real(), self.real()]
        parts[0]["figures"] = []
        parts[1]["programs"] = []
        devices, benchmarks, _ = self.documents(*parts)
        self.assertTrue("yes: Tester 9000" in devices)
        self.assertTrue("### Tester 9000" in benchmarks)
        parts[1]["about"] = "another bundle"
        _, _, done = self.documents(*parts)
        self.assertIn("another bundle", done.stderr)

    def test_the_tests_that_show_an_assumption_are_in_the_bundle(self):
        with open(os.path.join(BUILD, "gpu_bundle.plan"),
                  encoding="utf-8") as file:
            names = {line.split("\t")[3].split("/")[-1] for line in file}
        with open(os.path.join(ROOT, "docs", "devices.md"),
                  encoding="utf-8") as file:
            table = file.read().split("written by scripts/gpu_report -->")[1]
        rows = [line.strip("| \n").split(" | ")
                for line in table.split("<!--")[0].splitlines()
                if line.startswith("| ")]
        self.assertEqual({len(row) for row in rows}, {5})
        shown = {name for row in rows[1:]
                 for name in re.findall(r"`(\w+)`", row[3])}
        self.assertTrue(shown)
        if "cuda_export" not in names: # no CUDA Toolkit is here
            shown.discard("cuda_export")
        self.assertEqual(shown - names, set())


if __name__ == "__main__":
    unittest.main()
