# SPDX-License-Identifier: Apache-2.0
"""Traces with known contents, as runtime/observe/trace_json.c writes them.

    made_trace.py BATCHES > trace.json
"""
import json
import sys

PID, LOOP, READER, WORKER = 7, 7, 8, 9  # threads
THREADS = ((LOOP, "demo"), (READER, "uva-b0"), (WORKER, "uva-c0"))


class Trace:
    """Events of one stream that reads, maps and consumes.

    Each batch takes 100 us: `get_next` 60 of them, then `map` 30, then
    `on_batch` 10. They run one at a time.
    """

    def __init__(self, stream="flights #1"):
        self.stream = stream
        self.events = [self.event("M", 0, 0, name="process_labels",
                                  args={"labels": "uvarrow"})]
        for thread, name in THREADS:
            self.events.append(self.event("M", thread, 0, name="thread_name",
                                          args={"name": name}))

    @staticmethod
    def event(phase, thread, at, **members):
        return {"ph": phase, "pid": PID, "tid": thread, "ts": at, **members}

    def add(self, phase, thread, at, name, part, **members):
        stage, of = part
        args = {"stream": self.stream, "stage": stage, "in": of}
        args.update(members.pop("args", {}))
        self.events.append(self.event(phase, thread, at, name=name, args=args,
                                      **members))

    def span(self, thread, at, length, name, part, batch):
        self.add("X", thread, at, name, part, dur=length, cat="uvarrow",
                 args={"batch": batch})

    def flow(self, phase, thread, at, number):
        bound = {"bp": "e"} if phase == "f" else {}
        self.events.append(self.event(phase, thread, at, id=number,
                                      cat="batch", name="batch", **bound))

    def request(self, at):
        self.add("i", LOOP, at, "request", (2, "consumer"), s="t",
                 cat="uvarrow", args={"value": 1})

    def queued(self, at, batches):
        name = f"batches in arrow_stream (0) of {self.stream}"
        self.events.append(self.event("C", LOOP, at, name=name,
                                      args={"batches": batches}))

    def wait(self, at, end, number):
        self.add("b", WORKER, at, "wait for worker", (1, "map"), id=number,
                 cat="wait")
        self.add("e", WORKER, end, "wait for worker", (1, "map"), id=number,
                 cat="wait")

    def batch(self, number, at):
        """One batch, which begins at `at`."""
        self.request(at)
        self.span(READER, at, 60, "get_next", (0, "arrow_stream"), number)
        self.flow("s", READER, at, number + 1)
        self.queued(at + 60, 1)
        self.span(WORKER, at + 60, 30, "map", (1, "map"), number)
        self.flow("t", WORKER, at + 60, number + 1)
        self.queued(at + 90, 0)
        self.span(LOOP, at + 90, 10, "on_batch", (2, "consumer"), number)
        self.flow("f", LOOP, at + 90, number + 1)

    def text(self):
        lines = ",\n".join(json.dumps(event, ensure_ascii=False)
                           for event in self.events)
        return f"[\n{lines}\n]\n"


def made(batches, stream="flights #1"):
    trace = Trace(stream)
    for number in range(batches):
        trace.batch(number, number * 100)
    return trace


if __name__ == "__main__":
    sys.stdout.write(made(int(sys.argv[1])).text())
