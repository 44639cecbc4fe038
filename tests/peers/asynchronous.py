"""Streams by the asynchronous interface, to and from a peer that has it as
peer_start(), peer_handler() and peer_arrived(): tests/peers/go/async.go."""

import ctypes
import pathlib
import tempfile

import cdata
import columns
import ours
from exchange import Result, judged, tried

VOID = ctypes.c_void_p
QUEUES = 1, 5, 100


class Both:
    """The two sides, on one runtime."""

    def __init__(self, peer):
        self.peer = peer
        self.module = ours.module("async_module")
        self.module.async_open.restype = VOID
        self.module.async_held.restype = ctypes.c_longlong
        peer.library.peer_handler.restype = VOID
        self.runtime = VOID(self.module.async_open())

    def from_peer(self, document, folder, window):
        """The peer's producer, our handler."""
        path = folder / "given.arrows"
        path.write_bytes(ours.written(document, ours.STREAM))
        out = cdata.Stream()
        text = ctypes.create_string_buffer(str(path).encode())
        code = self.module.async_from(self.runtime, self.peer.library.peer_start,
                                      text, window, ctypes.byref(out))
        if code != 0:
            raise ours.Refused(f"code {code}")
        return cdata.import_stream(out)

    def to_peer(self, document, folder, queue, fail=None):
        """Our producer, the peer's handler."""
        path = folder / "taken.arrows"
        handler = VOID(self.peer.library.peer_handler(ctypes.c_uint64(queue)))
        stream = cdata.export_stream(document, fail)
        code = self.module.async_to(self.runtime, ctypes.byref(stream), handler)
        if code != 0:
            raise ours.Refused(f"code {code}")
        self.peer.call("peer_arrived", handler, ctypes.c_int64(-1),
                       str(path).encode())
        return ours.read(path)


def failing(both, document, folder, after):
    try:
        both.to_peer(document, folder, 5, after)
    except ours.Refused as error:
        return "" if "it broke: ü" in str(error) else str(error)
    return "the error is lost"


def exchange(peer, given):
    both = Both(peer)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number, (name, document) in enumerate(given.items()):
            size = QUEUES[number % len(QUEUES)]
            for check, run in (("asynchronous, its producer", both.from_peer),
                               ("asynchronous, its handler", both.to_peer)):
                found = tried(run, document, folder, size)
                yield Result(check, name,
                             judged(document, found, columns.difference))
        for after in range(3):
            found = tried(failing, both, given["int32"], folder, after)
            yield Result("asynchronous, error", f"after {after} batches",
                         str(found))
