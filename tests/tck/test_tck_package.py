#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Follows docs/tck.md in an empty folder: builds the wheel uvarrow-tck, installs it in
an empty environment, and builds and plays the template of each language whose compiler
is here, by the commands as they stand in the page. Then the program and the wheel are
looked at.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(os.environ.get("UVA_TEST_SOURCE", ".")).resolve()
if os.environ.get("UVA_TEST_SANITIZE"):
    sys.exit(77)
COMPILERS = {"c": "cc", "cpp": "c++", "go": "go", "rust": "rustc"}


def page():
    """The commands before a template is built, the build of each language, and the
    command that plays it."""
    text = (SOURCE / "docs/tck.md").read_text(encoding="utf-8")
    part = text.split("## Five minutes\n")[1].split("\n## ")[0]
    blocks = ["\n".join(line[4:] for line in block.splitlines())
              for block in re.findall(r"(?:^    .*\n)+", part, re.M)]
    builds = dict(re.findall(r"^\| `(\w+)` \| `(.+?)`", part, re.M))
    assert len(blocks) == 2, blocks
    return blocks[0], builds, blocks[1]


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.checkout = cls.folder / "checkout"
        cls.checkout.mkdir()
        for name in ("include", "runtime", "tck", "tools", "examples", "scripts",
                     "LICENSE"):
            (cls.checkout / name).symlink_to(SOURCE / name)
        (cls.checkout / "scripts").unlink()  # it builds where it lies
        (cls.checkout / "scripts").mkdir()
        shutil.copy(SOURCE / "scripts/tck_wheel", cls.checkout / "scripts")
        cls.empty = cls.folder / "empty"
        cls.empty.mkdir()
        first, cls.builds, cls.play = page()
        cls.run_in(cls.empty, first)

    @classmethod
    def run_in(cls, folder, text, **options):
        """Runs commands of the page in a shell, which finds the environment."""
        path = f"{cls.empty}/venv/bin:{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-eu", "-c", text], cwd=folder, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": path, "UVARROW": str(cls.checkout),
                 "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                 "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOPROXY": "off",
                 "UVA_TCK_WAIT_MS": "30000"}, **options)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def plays(self, language):
        if shutil.which(COMPILERS[language]) is None:
            self.skipTest(f"no {COMPILERS[language]}")
        folder = self.empty / f"of_{language}"
        self.run_in(self.empty, "python -m uvarrow_tck --template "
                                f"{language} {folder.name}")
        self.run_in(folder, self.builds[language])
        # not the longest cases: a process that has just been built is tried
        out = self.run_in(folder, f"{self.play} --filter AP")
        self.assertRegex(out, r"(?m)^(ok .*\n)+")
        held = int(re.search(r"^(\d+) held, 0 required broken, 0 recommended",
                             out, re.M)[1])
        self.assertGreater(held, 20)

    def test_every_language_has_a_template(self):
        self.assertEqual(set(self.builds), set(COMPILERS))
        self.assertEqual({path.name for path in (SOURCE / "examples/tck").iterdir()},
                         set(COMPILERS))

    def test_c(self):
        self.plays("c")

    def test_cpp(self):
        self.plays("cpp")

    def test_go(self):
        self.plays("go")

    def test_rust(self):
        self.plays("rust")

    def test_the_command_is_installed(self):
        said = self.run_in(self.empty, "uvarrow-tck --version; uvarrow-tck --help")
        self.assertRegex(said, r"^uvarrow-tck \d+\.\d+\.\d+\n")
        self.assertIn("Usage: uvarrow-tck [OPTION]", said)
        self.assertIn("start from: c, cpp, go, rust", said)

    def test_what_is_wrong_is_told_in_a_line(self):
        for words, text in (("--template cobol x", "no template cobol in x"),
                            ("--template c of_c2; python -m uvarrow_tck "
                             "--template c of_c2", "no template c in of_c2"),
                            ("--template c", "needs a language and a folder"),
                            ("no.so", "no.so: No such file")):
            said = self.run_in(self.empty,
                               f"! (python -m uvarrow_tck {words})")
            self.assertIn(text, said)
            self.assertEqual(said.count("\n"), 1, said)

    def test_the_program_needs_the_c_library_alone(self):
        tool = next(self.empty.glob("venv/lib/*/site-packages/uvarrow_tck/bin/*"))
        said = subprocess.run(["objdump", "-p", tool], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        needed = re.findall(r"NEEDED\s+(\S+)", said)
        self.assertTrue(needed)
        for name in needed:
            self.assertRegex(name, r"^(lib(c|dl|pthread)|ld-linux-[\w-]+)\.so")

    def test_the_wheel_is_for_any_python(self):
        wheel, = (self.checkout / "build/tck_wheel").glob("*.whl")
        self.assertRegex(wheel.name, r"^uvarrow_tck-[\d.]+-py3-none-linux_\w+\.whl$")
        with zipfile.ZipFile(wheel) as file:
            names = file.namelist()
        self.assertEqual([name for name in names if name.endswith((".so", ".pyc"))], [])


if __name__ == "__main__":
    unittest.main()
