# SPDX-License-Identifier: Apache-2.0
"""The test suite for implementations of Arrow's asynchronous device streams:
python -m uvarrow_tck libsubject.so"""
import pathlib

_HERE = pathlib.Path(__file__).resolve().parent

TOOL = _HERE / "bin" / "uvarrow-tck"  # the command, which takes a shared object
INCLUDE = _HERE / "include"           # has uvarrow/tck.h, for subjects in C
TEMPLATES = _HERE / "templates"       # a folder for each language
