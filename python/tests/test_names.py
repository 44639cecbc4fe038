# SPDX-License-Identifier: Apache-2.0
"""The names of the package that the pages and docstrings write are there after
`import uvarrow` alone, or that of the module for an engine, and take the keywords
that the examples pass."""
import ast
import functools
import importlib
import inspect
import json
import os
import re

import pytest

import uvarrow
from conftest import run_script

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# other words that begin so: headers, libraries, keys of metadata
NO_NAMES = {"h", "hpp", "so", "pc", "cmake", "vendor", "vendor_call",
            "vendor_code"}
# modules that a program imports by name, as each is for another package
MODULES = "dask", "gevent", "ray", "spark"


def pages():
    folders = {"": ".md", "docs": ".md", "python": ".md",
               "python/src/uvarrow": ".py", "python/examples": ".py"}
    for folder, ending in folders.items():
        for name in sorted(os.listdir(os.path.join(ROOT, folder))):
            if name.endswith(ending):
                with open(os.path.join(ROOT, folder, name)) as file:
                    yield os.path.join(folder, name), file.read()


def names():
    found = {}
    for page, text in pages():
        for name in re.findall(r"(?<![\w/.<-])uvarrow((?:\.\w+)+)", text):
            if name.split(".")[1] not in {*NO_NAMES, *MODULES}:
                found.setdefault("uvarrow" + name, page)
    return found


def test_each_name_is_there_behind_the_import_alone():
    found = names()
    assert "uvarrow.adbc.Pool" in found and "uvarrow.stream" in found
    result = run_script("""
        import functools, json
        missing = []
        for name, page in json.loads(sys.argv[1]).items():
            try:
                functools.reduce(getattr, name.split(".")[1:], uvarrow)
            except AttributeError:
                missing.append(f"{page}: {name}")
        print(missing)
        """, json.dumps(found))
    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_each_name_is_there_behind_the_import_of_its_module():
    for page, text in pages():
        for module, rest in re.findall(
                rf"(?<![\w/.<-])uvarrow\.({'|'.join(MODULES)})((?:\.\w+)*)", text):
            found = importlib.import_module("uvarrow." + module)
            for name in rest.split(".")[1:]:
                assert hasattr(found, name), f"{page}: uvarrow.{module}{rest}"
                found = getattr(found, name)


def blocks():
    """Those in the form of a session are run by test_readme.py."""
    return [(page, block) for page, text in pages() if page.endswith(".md")
            for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
            if not block.startswith(">>>")]


def called(node):
    """The dotted names of a call, from `uvarrow` on; or None."""
    path = []
    node = node.func
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    return path if isinstance(node, ast.Name) and node.id == "uvarrow" else None


@pytest.mark.parametrize("page, block", blocks())
def test_each_call_in_an_example_has_keywords_that_are_taken(page, block):
    for node in ast.walk(ast.parse(block)):
        path = called(node) if isinstance(node, ast.Call) else None
        if path is None:
            continue
        if path[0] in MODULES:
            importlib.import_module("uvarrow." + path[0])
        function = functools.reduce(getattr, path, uvarrow)
        taken = inspect.signature(function).parameters
        assert {word.arg for word in node.keywords} <= set(taken), page
