# SPDX-License-Identifier: Apache-2.0
"""CSV and JSON: that other readers take them, and how a stream that fails, is
left or cancelled ends them."""
import csv
import errno
import gc
import io
import json

import anyio
import pyarrow as pa
import pytest

import uvarrow
from conftest import read_cancelled

TABLE = pa.table({"n": [1, None, 3], "t": ['a,b', "", None],
                  "x": [0.5, 1e300, None]})
KINDS = {"csv": uvarrow.csv, "json": uvarrow.json,
         "array": lambda rows: uvarrow.json(rows, array=True),
         "file": lambda rows: uvarrow.ipc(rows, file=True)}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


async def text_of(call, table, **options):
    parts = [chunk async for chunk in call(uvarrow.stream(table), **options)]
    assert {type(part) for part in parts} <= {memoryview}
    return b"".join(parts).decode()


def pieces(table, size=1):
    return table.to_batches(max_chunksize=size)


def test_lines_of_json(run):
    text = run(text_of, uvarrow.json, pieces(TABLE))
    assert text == ('{"n":1,"t":"a,b","x":0.5}\n{"n":null,"t":"","x":1e+300}\n'
                    '{"n":3,"t":null,"x":null}\n')


@pytest.mark.parametrize("size", [1, 2, 3])
def test_an_array_of_json(run, size):
    text = run(lambda: text_of(uvarrow.json, pieces(TABLE, size), array=True))
    assert text == ('[{"n":1,"t":"a,b","x":0.5},\n{"n":null,"t":"","x":1e+300},\n'
                    '{"n":3,"t":null,"x":null}]\n')
    assert json.loads(text) == TABLE.to_pylist()


def test_line_breaks_in_an_array(run):
    table = pa.table({"t": ["a\nb", "\n", "],\n["], "\n": [1, 2, 3]})
    text = run(lambda: text_of(uvarrow.json, table, array=True))
    assert json.loads(text) == table.to_pylist()
    assert text.count("\n") == 3


@pytest.mark.parametrize("table", [TABLE.slice(0, 0), [TABLE.slice(0, 0)] * 2])
def test_no_rows(run, table):
    assert run(text_of, uvarrow.json, table) == ""
    assert run(lambda: text_of(uvarrow.json, table, array=True)) == "[]\n"
    assert run(text_of, uvarrow.csv, table) == "n,t,x\n"
    assert run(lambda: text_of(uvarrow.csv, table, header=False)) == ""


def test_csv(run):
    assert run(text_of, uvarrow.csv, pieces(TABLE)) == (
        'n,t,x\n1,"a,b",0.5\n,"",1e+300\n3,,\n')


def test_the_options_of_csv(run):
    text = run(lambda: text_of(uvarrow.csv, pieces(TABLE), delimiter=";",
                               header=False, null="NA", crlf=True))
    assert text == '1;a,b;0.5\r\nNA;"";1e+300\r\n3;NA;NA\r\n'


def test_extension_types_as_stored(run):
    values = pa.array([bytes(range(16))], pa.binary(16))
    table = pa.table({"u": pa.ExtensionArray.from_storage(pa.uuid(), values)})
    uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"
    for call in (uvarrow.json, uvarrow.csv):
        assert uuid in run(text_of, call, table)
        text = run(lambda call=call: text_of(call, table, as_stored=True))
        assert uuid.replace("-", "") in text


def test_other_readers_take_it(run):
    rows = [{"n": i, "t": f'"{i}",\r\n;\t\\é'} for i in range(5000)]
    table = pa.Table.from_pylist(rows)
    text = run(text_of, uvarrow.csv, pieces(table, 700))
    assert list(csv.DictReader(io.StringIO(text, newline=""))) == [
        {"n": str(row["n"]), "t": row["t"]} for row in rows]
    text = run(text_of, uvarrow.json, pieces(table, 700))
    assert [json.loads(line) for line in text.splitlines()] == rows


def test_a_file_of_arrow(run):
    table = pa.table({"n": range(1000)})

    async def main():
        chunks = uvarrow.ipc(uvarrow.stream(pieces(table, 100)), file=True,
                             compression="zstd")
        return b"".join([chunk async for chunk in chunks])

    with pa.ipc.open_file(run(main)) as file:
        assert file.num_record_batches == 10
        assert file.read_all() == table


def test_bytes_on_request(run):
    async def main():
        for call in (uvarrow.csv, uvarrow.json):
            chunks = call(uvarrow.stream(TABLE), as_bytes=True)
            assert {type(chunk) async for chunk in chunks} == {bytes}

    run(main)


@pytest.mark.parametrize("options", [{}, {"array": True}])
def test_a_long_part_is_cut(run, options):
    """As a server copies what a socket does not take at once."""
    table = pa.table({"t": ["x" * 1000] * 4000})

    async def main():
        return [chunk async for chunk in uvarrow.json(uvarrow.stream(table),
                                                      **options)]

    chunks = run(main)
    gc.collect()
    sizes = [len(chunk) for chunk in chunks]
    assert max(sizes) == 1 << 20 and len(sizes) >= 4
    lines = b"".join(chunks).decode().splitlines()
    assert {json.loads(line.strip("[],"))["t"] for line in lines} == {"x" * 1000}
    assert len(lines) == 4000


def test_chunks_outlive_the_stream_and_the_loop(run, kind):
    async def main():
        return [chunk async for chunk in kind(uvarrow.stream(pieces(TABLE)))]

    first, second = run(main), run(main)
    gc.collect()
    assert b"".join(first) == b"".join(second)


# ---- ends -------------------------------------------------------------------

def test_a_source_that_fails_before_its_first_row(run, kind):
    def source():
        raise KeyError("mine")

    async def main():
        with pytest.raises(KeyError, match="mine"):
            await anext(kind(uvarrow.stream(source)))

    run(main)


def test_an_error_mid_stream_is_no_end(run, kind):
    """Neither is the array closed, nor is there a footer of a file."""
    def source():
        yield from pieces(TABLE)
        raise KeyError("mine")

    async def main():
        got, chunks = [], kind(uvarrow.stream(source))
        with pytest.raises(KeyError, match="mine"):
            async for chunk in chunks:
                got.append(bytes(chunk))
        async for _ in chunks:
            raise AssertionError("a chunk behind the end")
        return b"".join(got)

    data = run(main)
    assert not data.endswith((b"]\n", b"ARROW1"))


def test_rows_without_a_text(run):
    """Rows that are null themselves: the text says so, and no line is there."""
    rows = pa.StructArray.from_arrays([pa.array([1, 2])], ["n"],
                                      mask=pa.array([False, True]))

    class Nulls:
        def __arrow_c_array__(self, requested_schema=None):
            return rows.__arrow_c_array__()

    async def main():
        with pytest.raises(uvarrow.Error) as caught:
            await anext(uvarrow.json(uvarrow.stream([Nulls()])))
        return caught.value.errno

    assert run(main) == errno.ENOTSUP


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_closed_stream_has_no_whole_end(run, kind, steps):
    async def main():
        rows = uvarrow.stream(pieces(TABLE, 1) * 100)
        chunks = kind(rows)
        for _ in range(steps):
            await anext(chunks)
        await rows.aclose()
        with pytest.raises(uvarrow.Error) as caught:
            async for _ in chunks:
                pass
        return caught.value.errno

    assert run(main) == errno.ECANCELED


def test_a_step_that_is_cancelled_loses_no_chunk(run, gate, kind):
    table = pa.table({"n": range(100)})
    source = gate(pieces(table, 10), before=5)

    async def whole():
        chunks = kind(uvarrow.stream(pieces(table, 10)))
        return b"".join([chunk async for chunk in chunks])

    async def main():
        return await read_cancelled(kind(uvarrow.stream(source)), source)

    assert run(main) == run(whole)


def test_leaving_early_closes_the_source(run, gate, kind):
    source = gate(pieces(TABLE) * 40, before=5)

    async def main():
        chunks = kind(uvarrow.stream(source, interrupt=source.interrupt))
        await anext(chunks)
        await chunks.aclose()
        await source.wait_closed()

    run(main)


def test_the_reader_raises(run, gate, kind):
    source = gate(pieces(TABLE) * 40, before=5)

    async def main():
        rows = uvarrow.stream(source, interrupt=source.interrupt)
        with pytest.raises(ZeroDivisionError):
            async with rows:
                async for _ in kind(rows):
                    raise ZeroDivisionError
        await source.wait_closed()

    run(main)


def test_no_more_is_encoded_than_the_window_has(run):
    """Batches wait in the source for a reader that takes no chunk."""
    taken = 0

    def source():
        nonlocal taken
        for _ in range(200):
            taken += 1
            yield pa.record_batch({"t": ["x" * 10000] * 100})

    async def main():
        rows = uvarrow.stream(source, max_bytes=1 << 20)
        chunks = uvarrow.json(rows)
        async with rows:
            for _ in range(3):
                await anext(chunks)
                await anyio.sleep(0)
            # until the source stands still, as the windows are full
            before = -1
            while before != taken:
                before = taken
                for _ in range(200):
                    await anyio.to_thread.run_sync(lambda: None)
            assert 20 < taken < 50 # each has 1 MB; 32 MiB are encoded ahead

    run(main)


@pytest.mark.parametrize("options, text", [
    ({"delimiter": ""}, "delimiter must be one character"),
    ({"delimiter": ";;"}, "delimiter must be one character"),
    ({"delimiter": "é"}, "delimiter must be one character"),
    ({"delimiter": '"'}, "delimiter must be one character"),
    ({"delimiter": "\n"}, "delimiter must be one character"),
    ({"null": "a,b"}, "null has a delimiter"),
    ({"null": "a\nb"}, "null has a delimiter"),
    ({"null": ";", "delimiter": ";"}, "null has a delimiter")])
def test_options_that_csv_cannot_have(run, options, text):
    async def main():
        async with uvarrow.stream(TABLE) as rows:
            with pytest.raises(ValueError, match=text):
                uvarrow.csv(rows, **options)

    run(main)
