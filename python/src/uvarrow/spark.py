# SPDX-License-Identifier: Apache-2.0
"""Spark Connect, which Spark 4, Sail and Databricks speak: a query as a Stream.
pyspark, or pyspark-client, has to be installed; it is not imported here.

    session = SparkSession.builder.remote("sc://localhost").getOrCreate()
    async with uvarrow.spark.stream(session.sql("SELECT ...")) as rows:
        ...
"""
import uuid

from . import _check, _stream


def stream(frame, *, window=4, max_bytes=_stream._BYTES):
    """Returns a Stream of the rows of a DataFrame of pyspark.sql.connect, as the
    server sends them; its `toArrow()` waits for all of them. `window` and
    `max_bytes` are as for `uvarrow.stream()`.

    When the stream is left, the query is interrupted on the server, by a tag. A slow
    reader holds Sail back if the result comes as it is read, as that of a scan and a
    filter does; Spark's server goes on, and keeps the result."""
    session = getattr(frame, "sparkSession", None)
    client = getattr(session, "client", None)
    if client is None or not hasattr(frame, "_plan"):
        raise _check.refuse(frame, "frame", "a DataFrame of Spark Connect")
    tag = f"uvarrow-{uuid.uuid4()}"

    def tables():
        session.addTag(tag) # of this thread alone
        try:
            for item in client.to_table_as_iterator(
                    frame._plan.to_proto(client), frame._plan.observations):
                if hasattr(type(item), "__arrow_c_stream__"): # or a schema
                    yield item
        except GeneratorExit:
            session.interruptTag(tag)
            raise
        finally:
            session.removeTag(tag)

    return _stream.stream(tables, window=window, max_bytes=max_bytes,
                          interrupt=lambda: session.interruptTag(tag),
                          own_thread=True)
