# SPDX-License-Identifier: Apache-2.0
"""What docs/adbc.md says of the validation queries is what the drivers of this
machine answer. `scripts/drivers --write` runs this to write the tables."""
import asyncio
import os
import pathlib

import pytest

import driver_page
import driver_queries as queries
import uvarrow.adbc
from conftest import run_script

WRITE = bool(os.environ.get("UVA_DRIVERS_WRITE"))
RUST = pathlib.Path(__file__).resolve().parents[2] / \
    "build/drivers/rust/target/debug/libadbc_driver_toy.so"
BEGIN, END = "<!-- the validation queries -->\n", "<!-- their end -->\n"


def page():
    """{head: {label: cell}} of both tables, and the page around them."""
    text = pathlib.Path(driver_page.PAGE).read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    tables, _, after = rest.partition(END)
    assert after, "the page has no place for the tables"
    return before, tables, after


def cells_of_page():
    found = {}
    for table in page()[1].strip().split("\n\n"):
        lines = [[cell.strip() for cell in line.split(" | ")] for line in
                 (line.strip("|") for line in table.splitlines())]
        for row in lines[2:]:
            label = ("Ingest of " if lines[0][0] else "") + row[0]
            for name, cell in zip(lines[0][1:], row[1:], strict=True):
                found.setdefault(name, {})[label] = cell
    return found


@pytest.fixture(params=queries.KINDS, scope="module")
def driver(request, tmp_path_factory):
    """(kind, pool)"""
    kind = request.param
    if kind == "rust":
        if not RUST.exists():
            pytest.skip("scripts/drivers has not built the driver in Rust")
        name, uri = str(RUST), None
    else:
        pytest.importorskip(f"adbc_driver_{kind}")
        name, uri = kind, {
            "postgresql": lambda: request.getfixturevalue("postgresql"),
            "flightsql": lambda: request.getfixturevalue("flight_database"),
        }.get(kind, lambda: str(tmp_path_factory.mktemp(kind) / "rows.db"))()
    with uvarrow.adbc.Pool(name, uri=uri, connections=2) as pool:
        yield kind, pool


def test_a_panic_of_rust_ends_the_driver():
    """In this process, so another one is asked."""
    if not RUST.exists():
        pytest.skip("scripts/drivers has not built the driver in Rust")
    done = run_script("""
        import uvarrow.adbc

        async def main(pool):
            for sql in "rows 3", "panic", "rows 3":
                try:
                    print(len(await pool.query(sql).read_all()))
                except uvarrow.Error as error:
                    print(error.metadata["adbc.status"], error.strerror)

        with uvarrow.adbc.Pool(sys.argv[1]) as pool:
            asyncio.run(main(pool))
    """, str(RUST))
    first, second, third = done.stdout.splitlines()
    assert first == "3"
    assert second.startswith("INTERNAL") and "panic in driver" in second
    assert third.startswith("INTERNAL") and "Driver panicked" in third


answers = {}


def test_the_page_has_these_answers(driver):
    kind, pool = driver
    answers[kind] = {label: asyncio.run(queries.asked(label, kind, pool))
                     for label in queries.CHECKS}
    if not WRITE:
        told = cells_of_page()
        assert queries.head(kind) in told, "scripts/drivers --write"
        assert answers[kind] == told[queries.head(kind)]


def test_the_tables_are_written():
    if not WRITE:
        pytest.skip("scripts/drivers --write does that")
    assert set(answers) == set(queries.KINDS)
    before, _, after = page()
    pathlib.Path(driver_page.PAGE).write_text(
        before + BEGIN + "\n".join(queries.tables_of(answers)) + END + after,
        encoding="utf-8")
