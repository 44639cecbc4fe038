"""polars, by its package of Python, with readers and writers of Arrow IPC of its own.
Its types are fewer: values are compared, not schemas."""

import polars as pl

import columns
from python.capsules import Package


class Polars(Package):
    name, version = "polars", pl.__version__
    difference = staticmethod(columns.difference_of_values)
    keeps_python = True
    crashes = "decimal32", "decimal64"
    errors = Exception, pl.exceptions.PanicException

    def exporter(self, path, form):
        if form == "stream":
            return pl.read_ipc_stream(path)
        return pl.read_ipc(path)

    def save(self, given, path, form, codec):
        frame = pl.DataFrame(given)
        write = frame.write_ipc_stream if form == "stream" else frame.write_ipc
        write(path, compression="uncompressed" if codec == "none" else codec)

    def again(self, given):
        return pl.DataFrame(given)
