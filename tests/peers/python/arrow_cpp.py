"""Arrow C++, by pyarrow, which adds hardly more than the names; by a module of C++
what that lacks."""

import itertools

import pyarrow as pa

import ours
from python.capsules import Package


class ArrowCpp(Package):
    name, version = "Arrow C++", pa.__version__

    def __init__(self):
        self.library = ours.module("arrow_module")

    def call(self, function, *arguments):
        ours.called(self.library, function, *arguments)

    def exporter(self, path, form):
        data = path.read_bytes()
        if form == "stream":
            return pa.ipc.open_stream(data)
        reader = pa.ipc.open_file(data)
        return pa.RecordBatchReader.from_batches(reader.schema, [
            reader.get_batch(i) for i in range(reader.num_record_batches)])

    def save(self, given, path, form, codec):
        options = pa.ipc.IpcWriteOptions(
            compression=None if codec == "none" else codec)
        new = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
        with pa.RecordBatchReader.from_stream(given) as reader, \
                new(str(path), reader.schema, options=options) as writer:
            for batch in reader:
                batch.validate(full=True)
                writer.write_batch(batch)

    def again(self, given):
        return pa.RecordBatchReader.from_stream(given)

    def rows(self, given, most):
        with pa.RecordBatchReader.from_stream(given) as reader:
            return sum(batch.num_rows
                       for batch in itertools.islice(reader, most))
