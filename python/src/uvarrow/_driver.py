# SPDX-License-Identifier: Apache-2.0
"""Where the drivers of databases lie: the libraries in packages of Python,
which are found without importing these."""
import importlib
import importlib.util
import os
import sys

# drivers with another name than the scheme of a URI
SCHEMES = {"postgres": "postgresql", "grpc": "flightsql",
           "grpc+tcp": "flightsql", "grpc+tls": "flightsql",
           "grpc+unix": "flightsql"}


def find(driver, options):
    """The library of a driver that is a package of Python, its options, and the
    driver's name, as far as that is known. Where there is no such package, C
    looks further, and finds the name in the URI by the same rules."""
    if driver is not None:
        return _library(driver) or driver, options, _name(driver)
    scheme, colon, rest = str(options.get("uri", "")).partition(":")
    name = SCHEMES.get(scheme, scheme)
    library = _library(name) if colon else None
    if library is not None and not rest.startswith("//"):
        options = {**options, "uri": rest}
    return library, options, name if colon else ""


def _name(driver):
    """"libadbc_driver_sqlite.so" is "sqlite", "_duckdb.cpython-311.so"
    "duckdb"."""
    name = os.path.basename(driver).partition(".")[0]
    return name.removeprefix("lib").removeprefix("adbc_driver_").strip("_")


def _library(name):
    """The library in the package of a driver, or None."""
    package = f"adbc_driver_{name}"
    if not package.isidentifier():
        return None
    spec = _spec(package)
    if spec is None:
        return None
    folders = [*(spec.submodule_search_locations or ()),
               os.path.join(sys.prefix, "lib")] # as Conda has it
    for folder in folders:
        library = os.path.join(folder, f"lib{package}.so")
        if os.path.isfile(library):
            return library
    module = _spec(f"_{name}") # DuckDB's driver is in its module
    if module is not None and str(module.origin).endswith(".so"):
        return module.origin
    return _asked(package)


def _spec(module):
    """How a module would be imported, which is not done; None: it is not
    there."""
    try:
        return importlib.util.find_spec(module)
    except ValueError: # it was imported without one
        return None


def _asked(package):
    """The answer of a package with its library elsewhere. Packages of ADBC have
    a private function for that, DuckDB's has a public one."""
    module = importlib.import_module(package)
    for function in ("_driver_path", "driver_path"):
        if hasattr(module, function):
            return getattr(module, function)()
    return None
