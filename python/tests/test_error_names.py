# SPDX-License-Identifier: Apache-2.0
"""No message has a name of the C interface, and texts of drivers stay as they
are."""
import pyarrow as pa
import pytest

import uvarrow

TABLE = pa.table({"n": [1]})


@pytest.mark.parametrize("build, text", [
    (lambda rows: rows.throttle(), r"throttle\(\): batches or bytes is needed"),
    (lambda rows: rows.rebatch(), r"rebatch\(\)"),
    (lambda rows: rows.parallel(2, window=1 << 30), "parallel|window"),
    (lambda rows: uvarrow.merge(rows, rows), "with itself"),
    (lambda rows: rows.map(lambda b: b, concurrency=1).tee(window=1 << 30),
     "tee|window"),
])
def test_an_option_is_named_as_in_python(run, build, text):
    async def main():
        with pytest.raises(uvarrow.Error, match=text) as raised:
            build(uvarrow.stream(TABLE))
        return str(raised.value)

    assert "uva_" not in run(main)


@pytest.mark.parametrize("of_c, of_python", [
    ("uva_throttle: there is no rate", "throttle(): there is no rate"),
    ("rows: uva_ipc_source: max_bytes is negative",
     "rows: ipc_source(): max_bytes is negative"),
    ("add uva_stream_transfer() to copy it", "add transfer() to copy it"),
    ("see uva_adbc_pool_session()", "see pool.session()"),
    ("uva_stream_from_file: fd 9: bad file descriptor",
     "fd 9: bad file descriptor"),
    ("no such table: uva_flights", "no such table: uva_flights"),
])
def test_texts(of_c, of_python):
    assert uvarrow.Error._of(5, of_c, []).strerror == of_python


@pytest.mark.parametrize("table, text", [
    (pa.table({"n": ["x"]}), "stream: the column 'n' is not as 'n' there"),
    (pa.table({"m": [1]}), "stream: the column 'm' is not as 'n' there"),
    (pa.table({"n": [1], "m": [1]}), "stream: 2 columns, not 1")])
def test_the_column_that_does_not_fit_is_named(run, table, text):
    async def main():
        await uvarrow.stream(TABLE).map(
            lambda batch: table.to_batches()[0]).read_all()

    with pytest.raises(ValueError, match=text):
        run(main)
