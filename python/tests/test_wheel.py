# SPDX-License-Identifier: Apache-2.0
"""What a wheel is built from: one module for each Python from 3.11 on, and the
refusal of a Python without the GIL. scripts/wheel checks the wheel itself, by the
same functions."""
import os
import subprocess
import sys
import sysconfig
import zipfile

import pytest

import uvarrow
import wheel_check

FREE = "import sys; sys.abiflags = 't'\n" # all that tells a free-threaded Python
REFUSED = "needs the GIL"


def test_the_module_loads_in_each_python():
    assert wheel_check.module_faults(uvarrow._core.__file__) == []


@pytest.fixture
def module(tmp_path):
    """Compiles a module with these lines, and returns its path."""
    def compile_it(lines, *options):
        path = str(tmp_path / "module.so")
        text = f"#include <Python.h>\nvoid *PyInit__core(void) {{ {lines} }}"
        subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", path, "-I",
                        sysconfig.get_path("include"), *options],
                       input=text, text=True, check=True)
        return path
    return compile_it


def test_a_call_outside_of_the_limited_api_is_found(module):
    assert wheel_check.module_faults(module("return PyList_New(0);")) == []
    assert wheel_check.module_faults(module("return PyFrame_GetBack(0);")) == [
        "PyFrame_GetBack is not in the limited API"]


def test_an_export_is_found(module):
    path = module("return 0; } int uv_run(void) { return 1;")
    assert wheel_check.module_faults(path) == ["uv_run is exported"]


def test_a_call_that_the_c_library_lacks_is_found(module):
    path = module("return 0; } int f(int a); int g(void) { return f(1);")
    assert "f is not in module.so" in wheel_check.calls_faults(path, path)


def test_a_wheel_that_lacks_something_is_found(module, tmp_path):
    path = str(tmp_path / "uvarrow-0-cp312-cp312-linux_x86_64.whl")
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(module("return 0;", "-Wl,--no-as-needed", "-lz"),
                    "uvarrow/_core.abi3.so")
    found = wheel_check.wheel_faults(path)
    assert "uvarrow/__init__.py is not in it" in found
    assert "uvarrow/py.typed is not in it" in found
    assert "_core.abi3.so needs libz.so.1" in found
    assert "its license is not in it" in found
    assert "the extension of SQLite is not in it" in found
    assert [text for text in found if text.startswith("its name")]


def test_a_python_without_the_gil_is_refused_at_import():
    path = os.path.dirname(os.path.dirname(uvarrow.__file__))
    result = subprocess.run([sys.executable, "-c", FREE + "import uvarrow"],
                            env={**os.environ, "PYTHONPATH": path},
                            capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("ImportError: uvarrow " +
                                                     REFUSED)


def test_a_build_for_a_python_without_the_gil_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(FREE)
    folder = os.path.join(os.path.dirname(__file__), "..")
    result = subprocess.run(["cmake", "-S", folder, "-B", tmp_path / "build",
                             f"-DPython_EXECUTABLE={sys.executable}"],
                            env={**os.environ, "PYTHONPATH": str(tmp_path)},
                            capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert REFUSED in " ".join(result.stderr.split())


@pytest.mark.parametrize("options, text", [
    ("--arch", "--arch needs a value"),
    ("--arch sparc", "--arch sparc: it is x86_64 or aarch64"),
    ("--musl", "--musl needs --arch"),
    ("--arch x86_64 --from build", "--from and --arch exclude each other"),
    ("--arch x86_64 --musl python3", "no Python of this machine takes it: python3"),
    ("--tested", "no option is --tested")])
def test_options_that_do_not_fit_are_refused(options, text):
    command = os.path.join(os.path.dirname(__file__), "../../scripts/wheel")
    result = subprocess.run([command, *options.split()], capture_output=True,
                            text=True, check=False)
    assert (result.returncode, result.stderr) == (1, f"wheel: {text}\n")
