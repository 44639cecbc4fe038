# SPDX-License-Identifier: Apache-2.0
"""Drivers are found without the import of their packages, which takes tens of
milliseconds, during which the event loop would stand still."""
import os
import sys

import pytest

import uvarrow
import uvarrow.adbc
from conftest import run_script
from uvarrow import _driver


@pytest.mark.parametrize("name", ["sqlite", "duckdb", "postgresql", "flightsql"])
def test_a_pool_imports_no_package_of_its_driver(name):
    pytest.importorskip(f"adbc_driver_{name}")
    done = run_script(f"""
        import uvarrow.adbc
        before = set(sys.modules)
        uvarrow.adbc.Pool("{name}", uri="x").close()
        uvarrow.adbc.Pool(uri="{name}:x").close()
        print([one for one in set(sys.modules) - before
               if "{name}" in one or "adbc_driver" in one])
    """)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("name", ["sqlite", "duckdb", "postgresql", "flightsql"])
def test_its_library_is_what_the_package_has(name):
    package = pytest.importorskip(f"adbc_driver_{name}")
    path = getattr(package, "_driver_path", None) or package.driver_path
    library, options, found = _driver.find(name, {"uri": "a"})
    assert os.path.samefile(library, path())
    assert (options, found) == ({"uri": "a"}, name)
    assert _driver.find(library, {})[2] == name


@pytest.fixture
def package(tmp_path, monkeypatch):
    """make(text): a package of a driver, adbc_driver_odd."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(text):
        (tmp_path / "adbc_driver_odd").mkdir()
        (tmp_path / "adbc_driver_odd" / "__init__.py").write_text(text)

    yield make
    sys.modules.pop("adbc_driver_odd", None)


@pytest.mark.parametrize("function", ["_driver_path", "driver_path"])
def test_a_package_with_its_library_elsewhere_is_asked(package, function):
    package(f"def {function}(): return '/x/y.so'")
    assert _driver.find("odd", {})[0] == "/x/y.so"


def test_a_package_that_knows_no_library_counts_not(package):
    package("")
    assert _driver.find("odd", {}) == ("odd", {}, "odd")


def test_a_module_without_a_spec_counts_not(package, monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_odd",
                        type(sys)("adbc_driver_odd"))
    assert _driver.find("odd", {})[0] == "odd"


def test_the_library_of_conda_is_found(package, tmp_path, monkeypatch):
    package("raise AssertionError('imported')")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libadbc_driver_odd.so").touch()
    assert _driver.find("odd", {})[0] == str(
        tmp_path / "lib" / "libadbc_driver_odd.so")


def test_a_pool_is_an_asynchronous_context_manager(run):
    pytest.importorskip("adbc_driver_sqlite")

    async def main():
        async with uvarrow.adbc.Pool("sqlite", uri=":memory:") as pool:
            assert await pool.execute("CREATE TABLE t (n INTEGER)") is not None
        with pytest.raises(RuntimeError, match="the pool is closed"):
            pool.query("SELECT 1")
        with pytest.raises(KeyError, match="mine"):
            async with uvarrow.adbc.Pool("sqlite", uri=":memory:") as pool:
                raise KeyError("mine")
        with pytest.raises(RuntimeError, match="the pool is closed"):
            pool.query("SELECT 1")

    run(main)
