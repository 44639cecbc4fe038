# SPDX-License-Identifier: Apache-2.0
"""A Starlette application that streams queries, as Arrow IPC, CSV or JSON, as the
client asks: the rows are never in memory as a whole, and a client that disconnects
cancels its query in the database. FastAPI has the same handler.

    pip install starlette uvicorn adbc-driver-sqlite
    DATABASE=flights.db uvicorn server:app
    curl -H 'Accept: text/csv' 'localhost:8000/query?sql=SELECT+1+AS+one'
"""
import os

from starlette.applications import Starlette
from starlette.routing import Route

import uvarrow

pool = uvarrow.adbc.Pool(os.environ.get("DRIVER", "sqlite"),
                         uri=os.environ.get("DATABASE", ":memory:"))


async def query(request):
    rows = pool.query(request.query_params["sql"])
    return uvarrow.asgi.response(rows.timeout(first=30), request)


app = Starlette(routes=[Route("/query", query)])
