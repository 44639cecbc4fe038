# SPDX-License-Identifier: Apache-2.0
"""A stream as the answer of a server of ASGI, in the format that the client asks
for: Starlette, FastAPI, Litestar, and bare ASGI, on asyncio and trio.

Happy path:  first chunk (the query works) -> head -> chunks, each when the server
             has taken the one before -> end.

What can fail: before the head, an answer with its own status. After it, the
exception goes to the server, which cuts the connection without an end.

On cancel:   the client leaves: the stream is closed, which cancels its query.
"""
import errno
import json as _json
import logging
import sys
from collections.abc import Mapping

from . import _check, _host
from ._chunks import csv, ipc, json
from ._error import Error
from ._stream import Stream

__all__ = ["FORMATS", "Response", "response"]

_LOGGER = logging.getLogger("uvarrow")

#: The names of the formats, and their media types.
FORMATS = {"arrow": "application/vnd.apache.arrow.stream", "csv": "text/csv",
           "json": "application/x-ndjson", "json-array": "application/json"}
_CALLS = {"arrow": ipc, "csv": csv, "json": json,
          "json-array": lambda rows: json(rows, array=True)}


def response(rows, request, *, formats=tuple(FORMATS), headers=None):
    """An answer with the rows of a stream, to be returned from a handler, or to
    be called by ASGI: `await response(rows, scope)(scope, receive, send)`.

    `request` is the request of a framework, whose `scope` it reads, or a scope
    of ASGI: Accept chooses one of `formats`, the first one of those that it likes
    best: "arrow", "csv", "json" (an object a line) and "json-array". `headers`
    are others, as a mapping.

    The head is sent when the query has given its first chunk. What fails before
    is JSON, {"error": {"status": 400, "message": "..."}}: 400 for a failed query, 403 for a missing right,
    503 if the database cannot be reached, 504 after a timeout, 406 if no format
    fits. Other exceptions, and all that come later, go to the server, which cuts
    the answer off. When the client leaves, the stream is closed. Until then the
    answer reads the rest of the request's body, and drops it.
    """
    if not _check.is_a(rows, Stream):
        raise _check.refuse(rows, "rows", "a Stream")
    names = _names(formats)
    accept = _header(_scope(request), b"accept")
    return _kind()(rows, _chosen(accept, names), names, _extra(headers))


class Response:
    """The result of response(): an application of ASGI for one answer. Litestar
    needs it as the annotation of a handler."""

    body = b"" # what frameworks look for in an answer
    background = None

    def __init__(self, rows, name, names, headers):
        self._rows = rows
        self._names = names
        self._is_over = False
        self.status_code = 406 if name is None else 200
        self.media_type = FORMATS.get(name, FORMATS["json-array"])
        kind = self.media_type + "; charset=utf-8" * (name == "csv")
        self.raw_headers = [(b"content-type", kind.encode()),
                            (b"vary", b"accept"), *headers]
        self._chunks = None if name is None else _CALLS[name](rows)

    async def __call__(self, scope, receive, send):
        """Sends the answer, or as much of it as the client waits for."""
        host = _host.current()
        async with self._rows: # closed however it ends
            with host.scope() as waits:
                client = _Client(receive, send, waits)
                listens = host.starter()(client.listen())
                try:
                    await self._answer(client, scope.get("method") == "HEAD")
                except _Left:
                    pass
                finally:
                    client.is_over = True
                    listens.cancel()
            if client.failure is not None:
                raise client.failure
        if self.background is not None: # of Starlette
            await self.background()

    async def _answer(self, client, is_head):
        try:
            first = await self._first()
        except (Error, TimeoutError) as error:
            status, text = _explained(error)
            await self._refuse(client, status, text)
            return
        if self._chunks is None:
            known = ", ".join(FORMATS[name] for name in self._names)
            await self._refuse(client, 406, f"Accept has none of {known}")
            return
        await client.start(self.status_code, self.raw_headers)
        if not is_head:
            if first is not None:
                await client.write(first)
                del first # its columns are sent
            async for chunk in self._chunks:
                await client.write(chunk)
        await client.end(b"")

    async def _first(self):
        """The first chunk, if there is one: the query works."""
        if self._chunks is None:
            return None
        return await anext(self._chunks, None)

    async def _refuse(self, client, status, text):
        self.status_code = status
        body = _json.dumps(
            {"error": {"status": status, "message": text}}).encode() + b"\n"
        kept = [pair for pair in self.raw_headers if pair[0] == b"vary"]
        await client.start(status, [
            (b"content-type", FORMATS["json-array"].encode()),
            (b"content-length", str(len(body)).encode()), *kept])
        await client.end(body)


class _Left(Exception):
    """The client has left."""


class _Client:
    """The other side of an answer."""

    def __init__(self, receive, send, waits):
        self._receive = receive
        self._send = send
        self._waits = waits
        self.is_over = False # a disconnect is the end of the answer
        self.failure = None # of receive()

    async def listen(self):
        """Ends the answer when the client leaves."""
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass
        except Exception as error: # raised by the answer
            self.failure = None if self.is_over else error
        if not self.is_over:
            self._waits.cancel()

    async def _put(self, message):
        try:
            await self._send(message)
        except OSError as error: # as ASGI 2.4 has it
            raise _Left from error

    async def start(self, status, headers):
        await self._put({"type": "http.response.start", "status": status,
                         "headers": headers})

    async def write(self, chunk):
        await self._put({"type": "http.response.body", "body": chunk,
                         "more_body": True})

    async def end(self, body):
        self.is_over = True
        await self._put({"type": "http.response.body", "body": body,
                         "more_body": False})


# ---- frameworks -------------------------------------------------------------

_kinds = {}


def _kind():
    """The class of answers. FastAPI wants Starlette's; where that is loaded, an
    answer is one."""
    module = sys.modules.get("starlette.responses")
    base = getattr(module, "Response", None)
    if base is None:
        return Response
    if base not in _kinds:
        _kinds[base] = type("Response", (Response, base), {"__module__": __name__})
    return _kinds[base]


def _scope(request):
    scope = request
    if not _check.is_a(request, Mapping):
        scope = _check.method(request, "scope", "request")
    if not _check.is_a(scope, Mapping) or "headers" not in scope:
        raise _check.refuse(request, "request",
                            "a request with a scope, or a scope of ASGI")
    return scope


def _header(scope, name):
    """All lines of a header as one text."""
    return ",".join(value.decode("latin-1") for key, value in scope["headers"]
                    if bytes(key).lower() == name)


def _extra(headers):
    if headers is not None and not _check.is_a(headers, Mapping):
        raise _check.refuse(headers, "headers", "a mapping")
    return [(_line(key, "a name of headers").lower(),
             _line(headers[key], f"headers[{key!r}]")) for key in headers or ()]


def _line(value, name):
    value = _check.text(value, name)
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"uvarrow: {name} is not one line of ASCII text: "
                         f"{value!a}")
    return value.encode()


# ---- formats ----------------------------------------------------------------

def _names(formats):
    if not _check.is_a(formats, (tuple, list)) or not formats:
        raise _check.refuse(formats, "formats", "a tuple of names")
    for name in formats:
        _check.one_of(name, "a name of formats", tuple(FORMATS))
    return tuple(formats)


def _chosen(accept, names):
    """The first of the formats with the greatest weight; None: no one fits."""
    if not accept.strip():
        return names[0]
    ranges = [_range(one) for one in accept.lower().split(",") if one.strip()]
    best = max(names, key=lambda name: _weight(ranges, FORMATS[name]))
    return best if _weight(ranges, FORMATS[best]) > 0 else None


def _range(text):
    """(media range, weight)"""
    kind, *parameters = (part.strip() for part in text.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = float(value)
            except ValueError:
                weight = 0.0
    return kind, weight if 0 <= weight <= 1 else 0.0


def _weight(ranges, kind):
    """The range that fits best tells."""
    fits = {kind: 3, kind.partition("/")[0] + "/*": 2, "*/*": 1}
    return max(((fits[one], weight) for one, weight in ranges if one in fits),
               default=(0, 0.0))[1]


# ---- errors -----------------------------------------------------------------

# By SQLSTATE, or its first two characters
_STATUS = {"25006": 403, "42501": 403, "28": 403, "25P03": 504, "55P03": 504,
           "57014": 504, "08": 503, "40": 503, "53": 503, "57": 503}
_AWAY = errno.ESHUTDOWN, errno.ENOMEM


def _explained(error):
    """The status of an error of a query, and the text for the client. Raises it
    if it is no fault of the query."""
    metadata = getattr(error, "metadata", {})
    state = metadata.get("adbc.sqlstate", "")
    status = _STATUS.get(state, _STATUS.get(state[:2], 400))
    if isinstance(error, TimeoutError):
        status = 504
    elif "adbc.step" in metadata or error.errno in _AWAY: # it connected
        status = 503
    elif "adbc.status" not in metadata: # of no database
        raise error
    text = error.strerror if isinstance(error, Error) else "timed out"
    if status != 503:
        return status, text
    _LOGGER.warning("%s", text) # names of machines and users
    return status, "the database is not available"


for _public in (Response, response):
    _public.__module__ = "uvarrow.asgi"
