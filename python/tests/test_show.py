# SPDX-License-Identifier: Apache-2.0
"""Batches for other libraries and for people, streams and pools as text, and the
bar of progress()."""
import gc
import io

import numpy as np
import pyarrow as pa
import pytest

import uvarrow

ROWS = pa.record_batch({"n": range(8), "t": ["a", "<b>", None, "x" * 50] * 2})


def read(run, table=ROWS):
    async def main():
        return (await uvarrow.stream(table).read_all())[0]

    return run(main)


@pytest.fixture
def batch(run):
    return read(run)


# ---- other libraries --------------------------------------------------------

def test_a_batch_is_a_stream(batch):
    assert pa.RecordBatchReader.from_stream(batch).read_all() == pa.table(ROWS)
    assert pa.table(batch) == pa.table(ROWS)
    capsule = batch.__arrow_c_stream__(None)
    del batch
    gc.collect()
    reader = pa.RecordBatchReader._import_from_c_capsule(capsule)
    assert reader.read_next_batch() == ROWS
    with pytest.raises(StopIteration):
        reader.read_next_batch()


def test_a_slice_is_a_stream(run):
    async def main():
        rows = uvarrow.stream(pa.table(ROWS)).rebatch(rows=3)
        return [pa.table(one).to_pydict()["n"] for one in await rows.read_all()]

    assert run(main) == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_frames(batch):
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    for frame in polars.DataFrame(batch), batch.to_polars():
        assert isinstance(frame, polars.DataFrame)
        assert frame.to_dict(as_series=False) == ROWS.to_pydict()
    frame = batch.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["n"]) == list(range(8)) and list(frame.columns) == ["n", "t"]


def test_duckdb_makes_a_table_of_it(batch):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        assert connection.sql("SELECT sum(n) FROM batch").fetchall() == [(28,)]


def test_members_as_of_pyarrow(batch):
    mine = batch.to_pyarrow()
    for name in "num_rows", "num_columns":
        assert getattr(batch, name) == getattr(mine, name), name
    assert 0 <= batch.nbytes - mine.nbytes <= 8 # the last offsets, the bitmap
    assert batch.column_names == mine.schema.names
    assert len(batch) == len(mine) == 8


@pytest.mark.parametrize("mask", [
    pa.array([True, False, None, True] * 2), np.array([True, False, False, True] * 2)])
def test_select(batch, mask):
    assert batch.select(mask).to_pyarrow().column("n").to_pylist() == [0, 3, 4, 7]
    assert batch.num_rows == 8


def test_select_no_row_and_all(batch):
    assert len(batch.select(np.zeros(8, bool))) == 0
    assert batch.select(np.ones(8, bool)).to_pyarrow() == ROWS


@pytest.mark.parametrize("mask, kind", [
    (None, TypeError), ([True] * 8, TypeError), (5, TypeError), ("x", TypeError),
    (pa.array([True]), ValueError), (pa.array([1] * 8), TypeError)])
def test_select_refuses(batch, mask, kind):
    with pytest.raises(kind, match="mask"):
        batch.select(mask)


def test_a_closed_batch(batch):
    batch.close()
    for call in (batch.__arrow_c_stream__, batch.to_pandas, batch.to_polars,
                 lambda: batch.select(np.ones(8, bool))):
        with pytest.raises(ValueError, match="the batch is closed"):
            call()
    assert repr(batch).startswith("<uvarrow.Batch of")
    assert "<table>" in batch._repr_html_()


# ---- text -------------------------------------------------------------------

def test_a_batch_as_text(batch):
    assert repr(batch) == """\
<uvarrow.Batch of 8 rows, 2 columns>
n: int64 | t: string
0        | a
1        | <b>
2        | null
3        | xxxxxxxxxxxxxxxxxxxxxxx\u2026
4        | a
\u2026"""


def test_a_batch_in_a_notebook(batch):
    text = batch._repr_html_()
    assert "<th>n: int64</th>" in text and "<td>&lt;b&gt;</td>" in text
    assert "8 rows, 2 columns" in text and text.count("<tr>") == 6


def test_other_batches_as_text(run):
    wide = pa.record_batch({f"c{i}": [i] for i in range(40)})
    lines = repr(read(run, wide)).splitlines()
    assert lines[0] == "<uvarrow.Batch of 1 row, 40 columns>"
    assert all(line.endswith("| \u2026") for line in lines[1:]) and len(lines) == 3
    few = pa.record_batch({"n": pa.array([], "int64")})

    async def empty():
        return await uvarrow.stream([few]).read_all()

    assert repr(run(empty)[0]).splitlines()[-1] == "n: int64"
    nested = pa.record_batch({"l": [[1, 2]], "s": [{"a": 1}]})
    assert repr(read(run, nested)).startswith("<uvarrow.Batch of 1 row, 2 columns>")


def test_a_stream_says_its_state(run):
    async def main():
        rows = uvarrow.stream([ROWS] * 20).name("flights").map(lambda one: one)
        assert repr(rows) == ("<uvarrow.Stream 'flights', not started: "
                              "arrow_stream > map; 0 batches, 0 rows>")
        async with rows:
            await anext(rows)
            assert "running" in repr(rows)
            rows.pause()
            assert "paused" in repr(rows)
            rows.resume()
            await rows.read_all()
            assert "complete" in repr(rows) and "20 batches, 160 rows" in repr(rows)
        other = uvarrow.stream([ROWS])
        merged = uvarrow.merge(uvarrow.stream([ROWS]), other)
        assert "part of another stream" in repr(other)
        await merged.aclose()
        assert "ended" in repr(merged)
        read_elsewhere = uvarrow.stream([ROWS])
        reader = read_elsewhere.to_reader()
        assert "read by a reader" in repr(read_elsewhere)
        assert "not opened" in repr(uvarrow.Stream())
        del reader

    run(main)


def test_a_pool_says_its_state_without_its_uri(run):
    pytest.importorskip("adbc_driver_sqlite")

    async def main():
        pool = uvarrow.adbc.Pool("sqlite", uri="file::memory:?secret")
        assert "0 connections used" in repr(pool)
        async with pool.query("SELECT 1") as rows:
            await anext(rows)
        assert "secret" not in repr(pool) and "sqlite" in repr(pool)
        pool.close()
        assert repr(pool).endswith("closed>")
        return uvarrow.adbc.Pool("sqlite")

    assert "sqlite" in repr(run(main)) # without a loop


# ---- progress ---------------------------------------------------------------

class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_in_a_terminal(run):
    terminal = Terminal()

    async def main():
        rows = uvarrow.stream([ROWS] * 50).progress("flights", file=terminal)
        return len(await rows.read_all())

    assert run(main) == 50
    assert terminal.getvalue().startswith("\rflights: 8 rows")
    assert "\rflights: 400 rows, " in terminal.getvalue()
    assert terminal.getvalue().endswith(" s\n")


def test_a_bar_with_a_total(run, tmp_path):
    terminal = Terminal()
    path = str(tmp_path / "rows.arrow")
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, ROWS.schema) as out:
        for _ in range(10):
            out.write_batch(ROWS)

    async def main():
        rows = uvarrow.file(path).progress(file=terminal)
        return len(await rows.read_all())

    assert run(main) == 10
    assert f"[{'#' * 24}] 100% 80 rows" in terminal.getvalue()


def test_the_part_of_a_bar():
    class Stage:
        rows, rows_expected = 30, 120

    class Source:
        def stats(self):
            return [Stage]

    class Where(list):
        def show(self, text, is_last):
            self.append((text, is_last))

    now = [0.0]
    source, where = Source(), Where()
    bar = uvarrow._progress.Bar(source, "", where, lambda: now[0])
    for now[0] in 2.0, 2.05, 3.0: # the second one comes too early
        bar("batch", 1, 0, 0.0)
    bar("request", 1, 0, 0.0)
    bar("end", 1, 0, 0.0)
    assert [text for text, _ in where] == [
        f"[{'#' * 6}{'.' * 18}]  25% 30 rows, {rate} rows/s, {seconds} s"
        for rate, seconds in ((15, "2.0"), (10, "3.0"), (10, "3.0"))]
    assert [is_last for _, is_last in where] == [False, False, True]
    del source # the last figures stay
    bar("end", 1, 0, 0.0)
    assert where[-1][0].endswith("30 rows, 10 rows/s, 3.0 s")


def test_no_bar_where_nobody_looks(run):
    file = io.StringIO()

    async def main():
        rows = uvarrow.stream([ROWS]).progress(file=file).progress()
        return len(await rows.read_all())

    assert run(main) == 1 and file.getvalue() == ""


def test_a_bar_in_a_notebook(run, monkeypatch):
    display = pytest.importorskip("IPython.display")
    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data["text/plain"])

    monkeypatch.setattr("uvarrow._progress._is_notebook", lambda: True)
    monkeypatch.setattr(display, "display", lambda *a, **k: Handle())

    async def main():
        return len(await uvarrow.stream([ROWS] * 3).progress().read_all())

    assert run(main) == 3 and "24 rows" in shown[-1]


def test_a_terminal_that_was_closed(run):
    terminal = Terminal()
    terminal.isatty = lambda: True

    async def main():
        rows = uvarrow.stream([ROWS] * 3).progress(file=terminal)
        terminal.close()
        return len(await rows.read_all())

    assert run(main) == 3


def test_progress_refuses(run):
    async def main():
        for options, text in (({"text": 5}, "text must be a str"),
                              ({"file": 5}, "file must be a file")):
            with pytest.raises(TypeError, match=text):
                uvarrow.stream([ROWS]).progress(**options)

    run(main)
