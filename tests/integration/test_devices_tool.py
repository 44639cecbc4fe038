#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command `uvarrow devices`: its list, and how it ends.

Environment variables give the paths: UVA_TEST_TOOL the command's,
UVA_TEST_BUILD a folder for files.

These tests do not depend on the devices of this machine. PATIENCE only ends a
test that hangs.
"""
import os
import re
import subprocess
import sys
import unittest

PATIENCE = 600  # seconds
TYPES = ("CPU", "CUDA", "CUDA_HOST", "OPENCL", "VULKAN", "METAL", "VPI", "ROCM",
         "ROCM_HOST", "EXT_DEV", "CUDA_MANAGED", "ONEAPI", "WEBGPU", "HEXAGON")
VARIABLES = {"UVA_CUDA_LIBRARY": ("CUDA", "CUDA_HOST", "CUDA_MANAGED"),
             "UVA_HIP_LIBRARY": ("ROCM", "ROCM_HOST"),
             "UVA_OPENCL_LIBRARY": ("OPENCL",)}
ROW = re.compile(r"^(\w+) +(yes|no) +(none needed|none|callback|polling) +"
                 r"(yes|no) *(.*)$")


class Devices(unittest.TestCase):
    uvarrow = folder = None

    def run_devices(self, *options, **variables):
        return subprocess.run([self.uvarrow, "devices", *options], text=True,
                              capture_output=True, timeout=PATIENCE,
                              env={**os.environ, **variables})

    def rows(self, **variables):
        """Returns {type: (available, mechanism, copies, library)}."""
        result = self.run_devices(**variables)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        head, *lines = result.stdout.splitlines()
        self.assertEqual(head.split(), ["type", "available", "mechanism",
                                        "copies", "library"])
        found = [ROW.match(line) for line in lines]
        self.assertNotIn(None, found, lines)
        self.assertEqual(tuple(row[1] for row in found), TYPES)
        return {row[1]: row.groups()[1:] for row in found}

    def assert_one_line(self, result, code, part):
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("uvarrow: "), result.stderr)
        self.assertIn(part, result.stderr)


class WhatIsListed(Devices):
    def test_every_type_of_the_document_has_its_row(self):
        rows = self.rows()
        self.assertEqual(rows["CPU"], ("yes", "none needed", "no", ""))
        self.assertEqual(rows["VULKAN"][:3], ("yes", "polling", "no"))
        for name in ("VPI", "WEBGPU", "HEXAGON"):
            self.assertEqual(rows[name][:3], ("no", "none", "no"))
            self.assertIn("NULL", rows[name][3])
        self.assertEqual(rows["ONEAPI"][:3], ("no", "polling", "no"))
        self.assertIn("has loaded no libsycl", rows["ONEAPI"][3])
        for name in ("METAL", "EXT_DEV"):
            self.assertEqual(rows[name][:3], ("no", "none", "no"))
            self.assertIn("uva_device_register()", rows[name][3])

    def test_what_is_not_available_says_why(self):
        for name, row in self.rows().items():
            with self.subTest(name=name):
                self.assertTrue(row[0] == "yes" or row[3], row)
                self.assertTrue(row[0] == "yes" or row[2] == "no", row)

    def test_a_library_that_is_not_there_is_named(self):
        for variable, names in VARIABLES.items():
            path = os.path.join(self.folder, "no", "such.so")
            rows = self.rows(**{variable: path})
            for name in names:
                with self.subTest(name=name):
                    self.assertEqual(rows[name][0], "no")
                    self.assertIn(path, rows[name][3])

    def test_a_library_that_is_something_else_is_told_so(self):
        for variable, names in VARIABLES.items():
            rows = self.rows(**{variable: "libm.so.6"})
            for name in names:
                with self.subTest(name=name):
                    self.assertEqual(rows[name][0], "no")
                    self.assertIn("it has no ", rows[name][3])

    def test_an_empty_variable_is_none(self):
        empty = dict.fromkeys(VARIABLES, "")
        self.assertEqual(self.rows(**empty), self.rows())

    def test_what_cannot_be_written_is_one_line(self):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([self.uvarrow, "devices"], text=True,
                                    stdout=full, stderr=subprocess.PIPE,
                                    timeout=PATIENCE)
        self.assert_one_line(result, 1, "No space left")


class WhatIsMeasured(Devices):
    def test_opencl_is_measured_where_it_is(self):
        result = self.run_devices("--measure")
        if "no OpenCL platform" in result.stderr:
            self.skipTest(result.stderr)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        figures = re.fullmatch(
            r"OPENCL: from an event to the loop in ([0-9.]+) us \(p50\), "
            r"([0-9.]+) us \(p99\), 400 events",
            result.stdout.splitlines()[-1])
        self.assertIsNotNone(figures, result.stdout)
        self.assertLessEqual(float(figures[1]), float(figures[2]))

    def test_nothing_to_measure_is_one_line(self):
        path = os.path.join(self.folder, "no", "such.so")
        self.assert_one_line(
            self.run_devices("--measure", UVA_OPENCL_LIBRARY=path), 1, path)
        self.assert_one_line(
            self.run_devices("--measure", UVA_OPENCL_LIBRARY="libm.so.6"), 1,
            "OpenCL")

    def test_a_platform_without_devices_is_one_line(self):
        empty = os.path.join(self.folder, "vendors")
        os.makedirs(empty, exist_ok=True)
        result = self.run_devices("--measure", OCL_ICD_VENDORS=empty,
                                  OPENCL_VENDOR_PATH=empty)
        if "no library" in result.stdout.split("OPENCL", 1)[1].split("\n")[0]:
            self.skipTest("no OpenCL here")
        self.assert_one_line(result, 1, "no OpenCL platform has a device")


class Arguments(Devices):
    def test_wrong_arguments_are_refused(self):
        for words in (["--mesure"], ["all"], [""], ["--measure", "OPENCL"],
                      ["--measure=1"]):
            with self.subTest(words=words):
                result = self.run_devices(*words)
                self.assert_one_line(result, 2, "--help")
                self.assertEqual(result.stdout, "")

    def test_help_is_help(self):
        for words in (["--help"], ["--measure", "--help"]):
            result = self.run_devices(*words)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertTrue(result.stdout.startswith("Usage: uvarrow devices"))
            for variable in VARIABLES:
                self.assertIn(variable, result.stdout)


if __name__ == "__main__":
    Devices.uvarrow = os.environ.get("UVA_TEST_TOOL", "")
    Devices.folder = os.path.join(os.environ.get("UVA_TEST_BUILD", ""),
                                  "test_devices_tool")
    if not os.path.exists(Devices.uvarrow):
        print("skipped: UVA_TEST_TOOL is not there", __doc__)
        sys.exit(77)
    os.makedirs(Devices.folder, exist_ok=True)
    unittest.main()
