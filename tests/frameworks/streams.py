#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tries the statements of docs/python.md on each framework: whether an answer
takes the memoryviews of `uvarrow.ipc()`, or bytes alone, and that handlers may
return `uvarrow.asgi.response()`. Usage: streams.py PAGE. Needs the package uvarrow and the frameworks of
tests/frameworks/requirements.txt.
"""
import asyncio
import re
import sys

import pyarrow as pa

import uvarrow

TYPE = "application/vnd.apache.arrow.stream"
TABLE = pa.table({"n": list(range(100000))})


def chunks(as_bytes):
    return uvarrow.ipc(uvarrow.stream(TABLE), as_bytes=as_bytes)


def starlette(as_bytes):
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def rows(_):
        return StreamingResponse(chunks(as_bytes), media_type=TYPE)
    return Starlette(routes=[Route("/", rows)])


def litestar(as_bytes):
    from litestar import Litestar, get
    from litestar.response import Stream

    @get("/")
    async def rows() -> Stream:
        return Stream(chunks(as_bytes), media_type=TYPE)
    return Litestar([rows])


def django(as_bytes):
    import django.conf
    from django.core.asgi import get_asgi_application
    from django.http import StreamingHttpResponse
    from django.urls import path

    async def rows(_):
        return StreamingHttpResponse(chunks(as_bytes), content_type=TYPE)
    if not django.conf.settings.configured:
        django.conf.settings.configure(ROOT_URLCONF=sys.modules[__name__],
                                       ALLOWED_HOSTS=["*"])
    global urlpatterns
    urlpatterns = [path("", rows)]
    django.urls.clear_url_caches()
    return get_asgi_application()


def rows_of_starlette():
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def rows(request):
        return uvarrow.asgi.response(uvarrow.stream(TABLE), request)
    return Starlette(routes=[Route("/", rows)])


def rows_of_fastapi():
    from fastapi import FastAPI, Request
    app = FastAPI()

    @app.get("/")
    async def rows(request: Request):
        return uvarrow.asgi.response(uvarrow.stream(TABLE), request)
    return app


def rows_of_litestar():
    from litestar import Litestar, Request, get

    @get("/")
    async def rows(request: Request) -> uvarrow.asgi.Response:
        return uvarrow.asgi.response(uvarrow.stream(TABLE), request)
    return Litestar([rows])


async def ask(app):
    """Returns the body of an answer, by ASGI itself."""
    sent, body = [{"type": "http.request", "body": b"", "more_body": False}], []

    over = asyncio.Event()

    async def receive():
        if sent:
            return sent.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.body":
            body.append(message.get("body", b""))
            if not message.get("more_body"):
                over.set()
    await app({"type": "http", "asgi": {"version": "3.0"}, "method": "GET",
               "http_version": "1.1", "scheme": "http", "path": "/",
               "raw_path": b"/", "query_string": b"", "root_path": "",
               "headers": [(b"host", b"localhost")], "state": {},
               "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)},
              receive, send)
    return b"".join(body)


def is_whole(make, *options):
    try:
        body = asyncio.run(asyncio.wait_for(ask(make(*options)), 30))
        return pa.ipc.open_stream(body).read_all() == TABLE
    except Exception as error:  # whatever the framework makes of it
        print(f"{make.__name__}{options}: {error!r}"[:200])
        return False


def main(page):
    with open(page, encoding="utf-8") as file:
        rows = {name.lower(): (views == "yes", bytes_ == "yes")
                for name, views, bytes_ in re.findall(
                    r"^\| (Starlette|Litestar|Django)[^|]*\| (yes|no) \| "
                    r"(yes|no) \|", file.read(), re.M)}
    got = {make.__name__: (is_whole(make, False), is_whole(make, True))
           for make in (starlette, litestar, django)}
    if rows != got:
        sys.exit(f"{page} states {rows}; got {got}")
    for make in (rows_of_starlette, rows_of_fastapi, rows_of_litestar):
        if not is_whole(make):
            sys.exit(f"{make.__name__}: the answer is not whole")


main(sys.argv[1])
