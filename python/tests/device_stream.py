# SPDX-License-Identifier: Apache-2.0
"""A device stream of the batches of pyarrow, which only exports batches so:
struct ArrowDeviceArrayStream, written by ctypes."""
import ctypes
import errno

SCHEMA = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CPU = 1


class Struct(ctypes.Structure):
    _fields_ = [("device_type", ctypes.c_int32), ("get_schema", SCHEMA),
                ("get_next", SCHEMA), ("get_last_error", ERROR),
                ("release", RELEASE), ("private_data", ctypes.c_void_p)]


class DeviceStream:
    """Has `__arrow_c_device_stream__`; must live as long as the capsule."""

    error = None # as bytes

    def __init__(self, schema, batches):
        self._schema = schema
        self._batches = iter(batches)
        self.released = 0

    def _get_schema(self, stream, out):
        self._schema._export_to_c(out)
        return self._spoil(out)

    def _spoil(self, out):
        """A peer's access to a schema; the code that it returns."""
        return 0

    def _get_next(self, stream, out):
        ctypes.memset(out, 0, 128)
        try:
            batch = next(self._batches, None)
            if batch is not None:
                batch._export_to_c_device(out)
        except Exception:
            return errno.EIO
        return 0

    def _get_error(self, stream):
        if self.error is None:
            return None
        self._text = ctypes.create_string_buffer(self.error)
        return ctypes.addressof(self._text)

    def _release(self, stream):
        self.released += 1
        ctypes.cast(stream, ctypes.POINTER(Struct))[0].release = RELEASE()

    def __arrow_c_device_stream__(self, **kwargs):
        self._struct = Struct(CPU, SCHEMA(self._get_schema),
                              SCHEMA(self._get_next), ERROR(self._get_error),
                              RELEASE(self._release), None)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        return new(ctypes.addressof(self._struct),
                   b"arrow_device_array_stream", None)
