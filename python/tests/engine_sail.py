# SPDX-License-Identifier: Apache-2.0
"""uvarrow.spark with Sail, a server of Spark Connect, as test_engines.py starts
it."""
import asyncio
import time

from pysail.spark import SparkConnectServer
from pyspark.sql import SparkSession

import uvarrow
import uvarrow.spark


async def rows_come(session):
    async with uvarrow.spark.stream(
            session.sql("SELECT id, id * 2 AS two FROM range(100000)")) as rows:
        assert (await rows.schema()).names == ["id", "two"]
        assert sum([len(batch) async for batch in rows]) == 100000
    streams = [uvarrow.spark.stream(session.range(i * 1000, i * 1000 + 1000))
               for i in range(4)]
    values = [one for batch in await uvarrow.merge(*streams).read_all()
              for one in batch.to_pyarrow().column(0).to_pylist()]
    assert sorted(values) == list(range(4000))


async def an_error_arrives(session):
    try:
        await uvarrow.spark.stream(session.sql("SELECT nope FROM range(5)")).read_all()
    except Exception as error:
        assert "nope" in str(error), error
    else:
        raise AssertionError("no error")


async def a_query_is_left(session):
    frame = session.sql("SELECT sum(a.id * b.id) AS n FROM range(1000000) a "
                        "CROSS JOIN range(1000000) b")
    begin = time.monotonic()
    try:
        await uvarrow.spark.stream(frame).timeout(total=1).read_all()
    except TimeoutError:
        pass
    else:
        raise AssertionError("it was fast")
    assert time.monotonic() - begin < 20
    frame = session.sql("SELECT a.id FROM range(100000) a CROSS JOIN range(1000) b")
    async with uvarrow.spark.stream(frame, window=1) as rows:
        await anext(rows)
        await rows.aclose(seconds=None)
    assert session.getTags() == set()


def main():
    server = SparkConnectServer("127.0.0.1", 0)
    server.start()
    host, port = server.listening_address
    session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()
    for test in rows_come, an_error_arrives, a_query_is_left:
        begin = time.monotonic()
        asyncio.run(test(session))
        print(f"{test.__name__}: {time.monotonic() - begin:.1f} s", flush=True)
    session.stop()
    server.stop()
    print("all of them", flush=True)


main()
