"""Streams of the C interface as Python's packages pass them: in capsules."""

import ctypes

import cdata
import columns
import ours

NAME = b"arrow_array_stream"
_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = ctypes.py_object, ctypes.c_char_p


class Given:
    """A stream, for one import."""

    def __init__(self, stream):
        self.stream = stream

    def __arrow_c_stream__(self, requested_schema=None):
        return _new(ctypes.addressof(self.stream), NAME, None)


def stream_of(exporter):
    """The stream that an object of a package gives."""
    capsule = exporter.__arrow_c_stream__()
    theirs = cdata.Stream.from_address(_pointer(capsule, NAME))
    stream = cdata.Stream.from_buffer_copy(theirs)
    theirs.release = cdata.RELEASE()
    return stream


class Package:
    """A peer that is a package of Python. Its functions are
        exporter(path, form)             what was read, as an exporter
        save(given, path, form, codec)   writes an exporter
        again(given)                     an exporter of what was imported
        rows(given, most)                reads so many batches, if it has that."""
    forms = "stream", "file"
    codecs = ours.CODECS
    difference = staticmethod(columns.difference)
    errors = Exception

    @property
    def drains(self):
        return hasattr(self, "rows")

    def read_all(self, paths, form):
        return {name: self.tried(lambda path=path: cdata.import_stream(
            stream_of(self.exporter(path, form))))
                for name, path in paths.items()}

    def write(self, document, path, form, codec):
        self.save(Given(cdata.export_stream(document)), path, form, codec)
        return path

    def write_all(self, documents, form, codec, folder):
        return {name: self.tried(lambda name=name, document=document: self.write(
            document, folder / name, form, codec))
                for name, document in documents.items()}

    def tried(self, run):
        try:
            return run()
        except self.errors as error:
            return ours.Refused(f"{type(error).__name__}: {error}")

    def refusing(self, run):
        """The result; an error of the package is Refused."""
        made = self.tried(run)
        if isinstance(made, Exception):
            raise made
        return made

    def passed(self, stream):
        return self.refusing(lambda: stream_of(self.again(Given(stream))))

    def drained(self, stream, most):
        return self.refusing(lambda: self.rows(Given(stream), most))
