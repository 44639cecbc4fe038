# SPDX-License-Identifier: Apache-2.0
"""Ray, Dask and Sail, with the modules that make streams of what they give. They are
900 MB, so that scripts/bootstrap does not install them: those tests are skipped unless
build/engines is a virtual environment with scripts/requirements-engines.txt, which
.ci/nightly makes. Each engine is a program of its own, engine_*.py."""
import os
import subprocess
import sys

import pytest

import uvarrow
import uvarrow.dask
import uvarrow.ray
import uvarrow.spark

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ENGINES = os.path.join(ROOT, "build", "engines", "bin", "python")
PACKAGE = os.path.dirname(os.path.dirname(uvarrow.__file__))


def run_program(python, *arguments, **variables):
    return subprocess.run(
        [python, *arguments], check=False, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": PACKAGE, "VIRTUAL_ENV": sys.prefix, **variables})


@pytest.mark.parametrize("engine", ("ray", "dask", "sail"))
def test_an_engine(engine, tmp_path):
    if not os.access(ENGINES, os.X_OK):
        pytest.skip("build/engines has no engines: see .ci/nightly")
    if "LD_PRELOAD" in os.environ:
        pytest.skip("the engines' own libraries are not for a sanitizer")
    done = run_program(ENGINES, os.path.join(HERE, f"engine_{engine}.py"),
                       str(tmp_path / "rows.db"), UVA_ENGINE_FOLDER=str(tmp_path),
                       RAY_USAGE_STATS_ENABLED="0")
    assert done.returncode == 0, done.stdout
    assert "\nall of them\n" in done.stdout # what engines log is around it


def test_no_engine_is_imported_before_it_is_used():
    done = run_program(sys.executable, "-c", "import sys; before = set(sys.modules)\n"
                       "import uvarrow.ray, uvarrow.dask, uvarrow.spark\n"
                       "print(sorted({one.partition('.')[0] for one in sys.modules}"
                       " & {'ray', 'dask', 'distributed', 'pyspark', 'pyarrow'}))")
    assert done.stdout == "[]\n"


class Client:
    submit = compute = cancel = print


REFUSED = {
    "source must be a streaming generator": lambda: uvarrow.ray.stream(5),
    "source must be a streaming": lambda: uvarrow.ray.stream(iter([])),
    "client must be a Client": lambda: uvarrow.dask.stream(5, []),
    "tasks must be an iterable": lambda: uvarrow.dask.stream(Client(), 5),
    "ahead is out of range": lambda: uvarrow.dask.stream(Client(), [], ahead=0),
    "frame must be a DataFrame": lambda: uvarrow.spark.stream(5),
}


@pytest.mark.parametrize("text", REFUSED)
def test_arguments_are_checked(text):
    with pytest.raises((TypeError, ValueError), match=text):
        REFUSED[text]()
