# SPDX-License-Identifier: Apache-2.0
"""An Arrow Flight server for test_flight.py, a separate process: prints its
port, and ends with its standard input. It counts the batches that it made. A ticket
is a number of batches. "N breaks K" is unavailable behind K of them, the next time
behind 3 * K, 5 * K ...; with the argument "even", behind 2 * K, 4 * K ..."""
import sys

import pyarrow as pa
import pyarrow.flight

BATCH = pa.record_batch({"n": pa.array([7] * (1 << 17), pa.int64())}) # 1 MiB


class Server(pa.flight.FlightServerBase):
    made = asked = 0

    def do_get(self, context, ticket):
        if ticket.ticket == b"fail":
            raise pa.flight.FlightServerError("no such rows")
        count, *breaks = ticket.ticket.split(b" breaks ")
        end = -1
        if breaks:
            end = int(breaks[0]) * (2 * self.asked + 1 + ("even" in sys.argv))
            self.asked += 1
        return pa.flight.GeneratorStream(BATCH.schema,
                                         self.batches(int(count), end))

    def batches(self, count, end):
        for number in range(count):
            if number == end:
                raise pa.flight.FlightUnavailableError("going down")
            self.made += 1
            yield BATCH

    def do_action(self, context, action):
        yield pa.flight.Result(str(self.made).encode())


if __name__ == "__main__":
    with Server("grpc://127.0.0.1:0") as server:
        print(server.port, flush=True)
        sys.stdin.read()
