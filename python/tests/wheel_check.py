# SPDX-License-Identifier: Apache-2.0
"""Fails when a wheel lacks a file of the package or a license, needs a library that
it does not have inside, or has a module that would not load in each Python from 3.11
on. Usage: wheel_check.py WHEEL [LIBC]. With a C library it also fails when that lacks
a function which the wheel calls."""
import functools
import glob
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

from elftools.elf.elffile import ELFFile

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "..", "src", "uvarrow")
# The parts of glibc and musl
SYSTEM = re.compile(r"(lib(c|m|dl|rt|pthread)|ld-linux-[\w-]+)\.so(\.\d+)?$")


@functools.cache
def limited_api():
    """The names that the headers have for a module of Python 3.11 and later."""
    command = [os.environ.get("CC", "cc"), "-E", "-P",
               "-DPy_LIMITED_API=0x030B0000", "-DPY_SSIZE_T_CLEAN", "-xc", "-",
               "-I" + sysconfig.get_path("include")]
    text = subprocess.run(command, input="#include <Python.h>", text=True,
                          capture_output=True, check=True).stdout
    return set(re.findall(r"\b_?Py\w+", text))


def symbols(path, defined):
    """The names that a library defines, or those that it must be given."""
    with open(path, "rb") as file:
        section = ELFFile(file).get_section_by_name(".dynsym")
        return [symbol.name for symbol in section.iter_symbols() if symbol.name
                and (symbol["st_shndx"] != "SHN_UNDEF") == defined
                and (defined or symbol["st_info"]["bind"] != "STB_WEAK")]


def module_faults(path):
    """What is wrong with a module: calls outside of the limited API, and exports,
    with which another module's libuv would be mixed up."""
    faults = [f"{name} is not in the limited API"
              for name in symbols(path, False)
              if re.match("_?Py", name) and name not in limited_api()]
    faults += [f"{name} is exported" for name in symbols(path, True)
               if name != "PyInit__core"]
    return faults


def needed(path):
    with open(path, "rb") as file:
        return [tag.needed for tag in
                ELFFile(file).get_section_by_name(".dynamic").iter_tags()
                if tag.entry.d_tag == "DT_NEEDED"]


def calls_faults(library, libc):
    """What the library calls that neither Python nor the C library has."""
    known = set(symbols(libc, True))
    return [f"{name} is not in {os.path.basename(libc)}"
            for name in symbols(library, False)
            if name not in known and not re.match("_?Py", name)]


def wheel_faults(path, libc=None):
    with zipfile.ZipFile(path) as wheel, tempfile.TemporaryDirectory() as temp:
        names = wheel.namelist()
        wheel.extractall(temp)
        libraries = [os.path.join(temp, name) for name in names
                     if ".so" in os.path.basename(name)]
        inside = {os.path.basename(name) for name in names}
        faults = [f"{os.path.basename(library)} needs {name}"
                  for library in libraries for name in needed(library)
                  if name not in inside and not SYSTEM.match(name)]
        if libc is not None:
            faults += [fault for library in libraries
                       for fault in calls_faults(library, libc)]
        module = os.path.join(temp, "uvarrow", "_core.abi3.so")
        faults += (module_faults(module) if os.path.exists(module) else
                   ["the module is not in it"])
    files = [os.path.basename(file) for pattern in ("*.py", "*.pyi", "py.typed")
             for file in glob.glob(os.path.join(PACKAGE, pattern))]
    faults += [f"uvarrow/{file} is not in it" for file in files
               if f"uvarrow/{file}" not in names]
    if not any(name.startswith("libuvarrow-sqlite.so.") for name in inside):
        faults.append("the extension of SQLite is not in it")
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        faults.append("its license is not in it")
    if "-cp311-abi3-" not in os.path.basename(path):
        faults.append("its name does not say: each Python from 3.11 on")
    return faults


if __name__ == "__main__":
    found = wheel_faults(*sys.argv[1:3])
    for fault in found:
        print(f"{sys.argv[1]}: {fault}", file=sys.stderr)
    sys.exit(bool(found))
