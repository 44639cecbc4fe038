"""The library, as the tests of peers use it: what it writes and reads as Arrow
IPC, by io.h and by the command, and streams that pass through it."""

import ctypes
import os
import pathlib
import subprocess
import tempfile

import cdata

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("UVA_PEERS_BUILD", ROOT / "build/test"))
STREAM, FILE = 0, 1
CODECS = "none", "lz4", "zstd"
ROOM = 1024

_modules = {}


def module(name):
    """A module of the tests."""
    if name not in _modules:
        found = (list(BUILD.glob(f"tests/*/lib{name}.so"))
                 or list(BUILD.glob(f"tests/*/{name}.so")))
        if not found:
            raise FileNotFoundError(f"{name} is not built in {BUILD}")
        _modules[name] = ctypes.CDLL(str(found[0]))
    return _modules[name]


class Refused(Exception):
    """An implementation refused data: its text"""


def text_room():
    return ctypes.create_string_buffer(ROOM)


def require(code, text):
    if code != 0:
        raise Refused(text.value.decode(errors="replace") or os.strerror(code))


def called(library, function, *arguments):
    """Calls a function of a peer that ends with room for a text."""
    text = text_room()
    require(getattr(library, function)(*arguments, text, ROOM), text)


def encode_stream(stream, form, codec=0):
    """The bytes of a stream of the C interface."""
    text = text_room()
    with tempfile.TemporaryFile() as file:
        code = module("ipc_module").ipc_encode(
            ctypes.byref(stream), form, codec, file.fileno(), text, ROOM)
        require(code, text)
        file.seek(0)
        return file.read()


def written(document, form, codec=0):
    """The bytes that io.h writes."""
    return encode_stream(cdata.export_stream(document), form, codec)


def read(path, mapped=False):
    """What io.h reads."""
    text, stream = text_room(), cdata.Stream()
    with open(path, "rb") as file:
        code = module("ipc_module").ipc_decode(
            file.fileno(), 0, int(mapped), ctypes.byref(stream), text, ROOM)
    require(code, text)
    try:
        return cdata.import_stream(stream)
    except cdata.Failed as error:
        raise Refused(error.args[1]) from error


def decoded(data):
    """A stream of the C interface of a stream of Arrow IPC, which needs no Python
    as it is read."""
    text, stream = text_room(), cdata.Stream()
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        code = module("ipc_module").ipc_decode(
            file.fileno(), 0, 0, ctypes.byref(stream), text, ROOM)
    require(code, text)
    return stream


def by_command(path, form="arrow", codec="none"):
    """The bytes that `uvarrow query --from` writes of a file."""
    words = ["--compression", codec] if codec != "none" else []
    done = subprocess.run(
        [BUILD / "tools/uvarrow", "query", "--quiet", "--from", path,
         "--format", form, *words], stdin=subprocess.DEVNULL,
        capture_output=True, check=False)
    if done.returncode != 0:
        raise Refused(done.stderr.decode().strip())
    return done.stdout


# ---- streams ----------------------------------------------------------------

class Stages(ctypes.Structure):
    """struct rows_stages of rows_module.c"""
    _fields_ = [("rows", ctypes.c_int64), ("bytes", ctypes.c_int64),
                ("limit", ctypes.c_int64), ("modulus", ctypes.c_int64),
                ("place", ctypes.c_int32), ("window", ctypes.c_int32),
                ("flat", ctypes.c_int32)]


_runtime = []


def runtime():
    """One for all streams."""
    if not _runtime:
        rows_module = module("rows_module")
        rows_module.rows_open.restype = ctypes.c_void_p
        _runtime.append(ctypes.c_void_p(rows_module.rows_open()))
    return _runtime[0]


def to_device(stream):
    """The stream as one of a device, which is the CPU."""
    out = cdata.DeviceStream()
    code = module("device_module").device_to(
        runtime(), ctypes.byref(stream), ctypes.byref(out))
    if code != 0:
        raise Refused(os.strerror(code))
    return out


def from_device(stream):
    """The reverse."""
    out = cdata.Stream()
    code = module("device_module").device_from(
        runtime(), ctypes.byref(stream), ctypes.byref(out))
    if code != 0:
        raise Refused(os.strerror(code))
    return out


def passed(stream, place=0, rows=0, flat=0):
    """The stream, through a runtime."""
    rows_module = module("rows_module")
    stages = Stages(rows, 0, -1, 0, place, 0, flat)
    out = cdata.Stream()
    code = rows_module.rows_play(runtime(), ctypes.byref(stream),
                                 ctypes.byref(stages), ctypes.byref(out))
    if code != 0:
        raise Refused(os.strerror(code))
    return out
