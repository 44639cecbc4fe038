# SPDX-License-Identifier: Apache-2.0
"""The stubs: two type checkers accept them and a program that uses them, and
they have the names and parameters of the package itself."""
import ast
import inspect
import os
import re
import subprocess
import sys

import pytest

import uvarrow
import uvarrow.adbc

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.dirname(os.path.dirname(uvarrow.__file__))


def checker(*command):
    return subprocess.run([sys.executable, "-m", *command],
                          cwd=os.path.dirname(HERE),
                          env={**os.environ, "MYPYPATH": BUILT},
                          capture_output=True, text=True, check=False)


def check(*command):
    result = checker(*command)
    assert result.returncode == 0, result.stdout + result.stderr


def test_mypy_accepts_the_stubs(tmp_path):
    check("mypy", "--cache-dir", str(tmp_path), "tests/typed.py")


def test_basedpyright_accepts_the_stubs():
    check("basedpyright", "--pythonpath", sys.executable)


def wrong_lines():
    with open(os.path.join(HERE, "typed_wrong.py"), encoding="utf-8") as file:
        return [number for number, line in enumerate(file, 1)
                if line.endswith("# wrong\n")]


def refused_lines(result):
    """The lines of typed_wrong.py in which a checker has found an error."""
    found = re.findall(r"typed_wrong\.py:(\d+)(?::\d+ -|:) error",
                       result.stdout)
    return sorted(set(map(int, found)))


def test_mypy_refuses_what_is_wrong(tmp_path):
    result = checker("mypy", "--cache-dir", str(tmp_path),
                     "tests/typed_wrong.py")
    assert len(wrong_lines()) > 40
    assert refused_lines(result) == wrong_lines(), result.stdout


def test_basedpyright_refuses_what_is_wrong():
    result = checker("basedpyright", "--pythonpath", sys.executable,
                     "tests/typed_wrong.py")
    assert refused_lines(result) == wrong_lines(), result.stdout


def declared(module):
    """(object that owns it, name, parameters) of each function of a stub."""
    path = os.path.join(os.path.dirname(HERE), "src", "uvarrow", module)
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    owners = {"adbc.pyi": uvarrow.adbc, "asgi.pyi": uvarrow.asgi}
    owner = owners.get(module, uvarrow)
    for node in tree.body:
        inner = getattr(owner, getattr(node, "name", ""), None)
        for one in [node, *getattr(node, "body", [])]:
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not any(isinstance(d, ast.Name) and d.id == "property"
                           for d in one.decorator_list) and inner is not None:
                    yield owner if one is node else inner, one.name, one.args


def defaults_of(args):
    places = args.posonlyargs + args.args
    pairs = [*zip(places[len(places) - len(args.defaults):], args.defaults),
             *zip(args.kwonlyargs, args.kw_defaults)]
    return {a.arg: ast.literal_eval(d) for a, d in pairs if d is not None}


def overloaded(module):
    """Functions that the stub declares more than once. These differ in an
    argument that may have no default."""
    found = [(owner, name) for owner, name, _ in declared(module)]
    return {one for one in found if found.count(one) > 1}


@pytest.mark.parametrize("module", ["__init__.pyi", "adbc.pyi",
                                    "asgi.pyi"])
def test_the_stubs_have_the_parameters_of_the_package(module):
    seen = 0
    for owner, name, args in declared(module):
        function = getattr(owner, name)
        try:
            actual = inspect.signature(function).parameters
        except ValueError:
            continue # written in C, without a signature
        if owner in (uvarrow.Batch, uvarrow.Column, uvarrow.Schema):
            continue
        names = [a.arg for a in args.posonlyargs + args.args + args.kwonlyargs]
        names += [a.arg for a in (args.vararg, args.kwarg) if a]
        assert sorted(actual) == sorted(names), f"{owner.__name__}.{name}"
        defaults = defaults_of(args)
        has_all = len(defaults) == sum(p.default is not p.empty
                                       for p in actual.values())
        assert has_all or (owner, name) in overloaded(module), name
        for argument, value in defaults.items():
            assert value == actual[argument].default, f"{name}: {argument}"
        seen += 1
    assert seen > (0 if module == "asgi.pyi" else 5)


def test_the_stubs_have_every_public_name():
    with open(os.path.join(os.path.dirname(HERE), "src", "uvarrow",
                           "__init__.pyi"), encoding="utf-8") as file:
        names = {node.name for node in ast.walk(ast.parse(file.read()))
                 if hasattr(node, "name")}
    for owner in (uvarrow, uvarrow.Stream, uvarrow.Batch, uvarrow.Column,
                  uvarrow.Schema):
        for name in getattr(owner, "__all__", dir(owner)):
            if not name.startswith("_") and name != "EXIT_STUCK":
                assert name in names


@pytest.mark.parametrize("owner", [
    uvarrow, uvarrow.adbc, uvarrow.asgi, uvarrow.Stream, uvarrow.Batch, uvarrow.Column,
    uvarrow.Schema,
    uvarrow.Reader, uvarrow.Error, uvarrow.adbc.Pool],
    ids=lambda owner: owner.__name__)
def test_every_public_name_has_a_help_text(owner):
    assert inspect.getdoc(owner)
    for name in getattr(owner, "__all__", dir(owner)):
        value = getattr(owner, name)
        own = getattr(value, "__module__", None) or ""
        if (name.startswith("_") or isinstance(value, (int, str))
                or not own.startswith("uvarrow") and owner is not uvarrow.Batch):
            continue
        assert inspect.getdoc(value), f"{owner.__name__}.{name}"
