"""nanoarrow, by its package of Python. That keeps the interpreter while it waits for
a stream, so it must not read one that needs another thread of Python."""

import nanoarrow
import nanoarrow.ipc

from python.capsules import Package


class Nanoarrow(Package):
    name, version = "nanoarrow", nanoarrow.__version__
    forms = "stream",
    codecs = "none",

    def exporter(self, path, form):
        return nanoarrow.c_array_stream(
            nanoarrow.ipc.InputStream.from_path(str(path)))

    def save(self, given, path, form, codec):
        with nanoarrow.ipc.StreamWriter.from_path(str(path)) as writer:
            writer.write_stream(nanoarrow.c_array_stream(given))

    def again(self, given):
        return nanoarrow.c_array_stream(given)
