# SPDX-License-Identifier: Apache-2.0
"""Batches and schemas as pickles, for programs of several processes. They are
pickled as pyarrow's, of which protocol 5 passes the buffers on without a copy."""
import copyreg

from . import _core

_SPARE = 4096


def _is_slice(data):
    """Whether the buffers have much besides the rows."""
    return data.get_total_buffer_size() > 2 * data.nbytes + _SPARE


def _batch(data, ordinal):
    import pyarrow
    if isinstance(data, pyarrow.Buffer):
        data = pyarrow.ipc.open_stream(data).read_next_batch()
    return _core.batch_of(data, ordinal)


def _reduce_batch(batch):
    import pyarrow
    data = batch.to_pyarrow()
    if _is_slice(data): # the format of Arrow IPC has the rows alone
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, data.schema) as writer:
            writer.write_batch(data)
        data = sink.getvalue()
    return _batch, (data, batch.ordinal)


def _schema(schema):
    return _core.schema_of(schema.__arrow_c_schema__())


def _reduce_schema(schema):
    return _schema, (schema.to_pyarrow(),)


copyreg.pickle(_core.Batch, _reduce_batch)
copyreg.pickle(_core.Schema, _reduce_schema)
