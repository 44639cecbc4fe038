"""A peer that is a library of C: peer_read(), peer_write(), peer_pass() and
peer_drain(), as tests/peers/go and tests/peers/rust have them."""

import ctypes

import cdata
import columns
import ours


class Native:
    forms = "stream", "file"
    codecs = ours.CODECS
    drains = True
    difference = staticmethod(columns.difference)

    def __init__(self, name, version, library):
        self.name, self.version = name, version
        self.library = ctypes.CDLL(str(library))

    def call(self, function, *arguments):
        ours.called(self.library, function, *arguments)

    def read(self, path, form):
        out = cdata.Stream()
        self.call("peer_read", str(path).encode(), int(form == "file"),
                  ctypes.byref(out))
        return cdata.import_stream(out)

    def read_all(self, paths, form):
        return {name: tried(self.read, path, form)
                for name, path in paths.items()}

    def write(self, document, path, form, codec):
        self.call("peer_write", ctypes.byref(cdata.export_stream(document)),
                  str(path).encode(), int(form == "file"),
                  ours.CODECS.index(codec))
        return path

    def write_all(self, documents, form, codec, folder):
        return {name: tried(self.write, document, folder / name, form, codec)
                for name, document in documents.items()}

    def passed(self, stream):
        out = cdata.Stream()
        self.call("peer_pass", ctypes.byref(stream), ctypes.byref(out))
        return out

    def drained(self, stream, most):
        rows = ctypes.c_int64()
        self.call("peer_drain", ctypes.byref(stream), ctypes.c_int64(most),
                  ctypes.byref(rows))
        return rows.value


def tried(run, *arguments):
    try:
        return run(*arguments)
    except (ours.Refused, cdata.Failed) as error:
        return error
