# SPDX-License-Identifier: Apache-2.0
"""An Arrow Flight server for test_flight.py, a separate process: prints its
port, and ends with its standard input. It counts the batches that it made."""
import sys

import pyarrow as pa
import pyarrow.flight

BATCH = pa.record_batch({"n": pa.array([7] * (1 << 17), pa.int64())}) # 1 MiB


class Server(pa.flight.FlightServerBase):
    made = 0

    def do_get(self, context, ticket):
        if ticket.ticket == b"fail":
            raise pa.flight.FlightServerError("no such rows")
        return pa.flight.GeneratorStream(BATCH.schema,
                                         self.batches(int(ticket.ticket)))

    def batches(self, count):
        for _ in range(count):
            self.made += 1
            yield BATCH

    def do_action(self, context, action):
        yield pa.flight.Result(str(self.made).encode())


if __name__ == "__main__":
    with Server("grpc://127.0.0.1:0") as server:
        print(server.port, flush=True)
        sys.stdin.read()
