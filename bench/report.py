"""Turns the measurements of run.py into a summary, which is kept, and the
summary into docs/benchmarks.md: which targets are met, by how much the other
targets are missed, then all figures.

Instead of the values of all rounds, a summary has their median, least and most:
[unit, median, least, most] for a figure, [title, median, least, most] for a
target. Only the median stands there if there was one value, and only the title
if a target could not be measured.
"""
import os
import statistics

import shapes
from layout import cell, number, table

NOTES = os.path.join(os.path.dirname(__file__), "notes.md")
PROFILE_ROWS = 16
WINDOWS = (1, 8, 64, 512)
STAGES = ("transform", "filter", "limit_rows", "map_async", "merge", "concat")

HEAD = """# Benchmarks

<!-- Written by bench/run.py; not by hand. The figures are explained in
bench/notes.md. -->

A batch has 1,024 rows. It has one of four shapes: **the flights**, 19 columns as those
of the demo, 14 of numbers and 4 of texts with nulls and a timestamp; one `int64`
column; 64 mixed columns, of numbers, texts, doubles, decimals, timestamps, booleans,
dates and dictionaries in turn; and 1,000 `int64` columns. Figures without a shape
are of one `int64` column. Batches are made once and given again and again, so the
measurement is of the way, not of the data. Programs are linked with the installed
library. `bench/measure` builds it, installs it, runs the programs of
[bench/](../bench), and writes this page.

Every figure is the median of {times} measurements, or of {rounds} where one
takes long. A round runs the programs one after the other, and each goes through
its cases {passes} times, so that both sides of a ratio were measured within a
second; each time ratios are formed, and their median is taken. On one core
(`taskset -c 0`) figures are the time that the process had the core; on two, the
loop has one and the other thread the other, and the time is the clock's.

The code is that of {code}.
Measured on {processor}, {cores} cores, {system}
{kernel}. Load average when it began: {load}; it is near 0 on an idle machine.
"""

# The title of each kind of case, in the order of the page.
PROGRAMS = {
    "drive": "One thread, producer to handler through the C interface",
    "lane": "A thread that calls `get_next`, a loop that receives",
    "outlet": "A loop that produces, a thread that reads and may wait",
    "arrow": "Arrow C++ at the same work",
    "decode": "A decode of 20 microseconds a batch, on 1 and 2 workers",
    "ipc": "A batch of 800 KB as Arrow IPC, without copying it; 1,024 flights "
           "read from a file",
    "formats": "A batch of 1,024 flights as text, and out of a file of Arrow "
               "IPC, beside Arrow C++",
    "open": "A blocking stream that is opened, gives one batch and is closed",
    "many": "10,000 open streams on one loop, and one",
    "heartbeat": "How late a timer of 1 ms is, 99th percentile",
    "steady": "Growth of a process over 10 million batches",
    "stages": "A stage more between arrays and a handler, on the loop thread",
    "merge": "Merging 2 to 1,000 streams",
    "rebatch": "Splitting to batches of 1,024 rows, and joining them",
    "branches": "A stream for one consumer, and for several by a tee",
    "take": "Taking batches, and getting them by a callback",
    "events": "Events of a device without costs",
    "opencl": "Events of an OpenCL device, and a wait of 100 ms",
    "cuda": "Events of a CUDA device, and a wait of 100 ms",
    "check_hop": "One hop without the protocol checker and with it",
    "beside": "A small query beside 200 sources that compute for 20 ms a batch",
}


class Target:
    """A target: value(round) must be at most, or at least, `limit`. Not every
    machine has the programs for the figures that begin with `needs`."""

    def __init__(self, title, mode, value, limit, unit, least=False, needs=""):
        self.title, self.mode, self.value = title, mode, value
        self.limit, self.unit, self.least = limit, unit, least
        self.needs = needs or ("arrow/" if least else "")

    def measured(self, measures):
        """[title, median, least, most], as in a summary"""
        values = per_round(measures[self.mode], self.value)
        return [self.title, *(spread(values) if values else ())]

    def row(self, middle, least=None, most=None):
        past = self.limit - middle if self.least else middle - self.limit
        by = number(past) if past >= 0.005 else "less than 0.01"
        verdict = "met" if past <= 0 else f"**missed by {by}{self.unit}**"
        return [self.title, number(middle) + self.unit,
                f"{number(middle if least is None else least)} to "
                f"{number(middle if most is None else most)}",
                f"at {'least' if self.least else 'most'} "
                f"{number(self.limit)}{self.unit}", verdict]


def spread(values):
    """The median, and the least and the most of several, in six digits"""
    some = [statistics.median(values)]
    if len(values) > 1:
        some += [min(values), max(values)]
    return [int(x) if x == int(x) else float(f"{x:.6g}") for x in some]


def per_round(figures, value):
    """Returns value() of each round; an empty list if a figure is missing."""
    rounds = max((len(f["rounds"]) for f in figures.values()), default=0)
    values = []
    for i in range(rounds):
        try:
            values.append(value(lambda name: figures[name]["rounds"][i]))
        except (KeyError, IndexError):
            continue
    return values


def median(figures, mode, name):
    figure = figures[mode].get(name)
    return figure[1] if figure else None


# ---- targets ----------------------------------------------------------------

def ratio(over, under):
    return lambda get: get(over) / get(under)


def difference(more, less, share=1):
    return lambda get: (get(more) - get(less)) / share


def flights_targets():
    """The batches that are like those of users come first."""
    for program, title in (("lane", "Lane to `for_each`"),
                           ("outlet", "`to_blocking`")):
        for window in WINDOWS:
            names = [f"{program}/{window}/{who}@flights"
                     for who in ("uvarrow", "ring")]
            yield Target(f"The flights: {title}, window {window}, one core: "
                         "more than a ring by hand", "one",
                         difference(*names), 250, " ns")
    for stage in STAGES:
        yield Target(f"The flights: `{stage}` on the loop thread: more than the "
                     "chain without it", "one",
                     difference(f"stages/{stage}@flights",
                                "stages/none@flights"), 80, " ns")
    yield Target("The flights: `rebatch`, joined: against `memcpy` of as many "
                 "bytes", "one", ratio("rebatch/shape/join@flights",
                                       "rebatch/shape/memcpy@flights"), 1.5,
                 " x")
    yield Target("The flights: window 64, against Arrow C++ at both ends, how "
                 "many times faster", "one",
                 ratio("arrow/64/both@flights", "lane/64/uvarrow@flights"), 10,
                 " x", least=True)


def drive_targets():
    for window, limit in ((64, 40), (1, 45)):
        name = f"drive/{window}/uvarrow"
        opened = f"{window} requests open" if window > 1 else \
            "`request(1)` a task"
        yield Target(f"One thread, {opened}", "one",
                     lambda get, name=name: get(name), limit, " ns")
        yield Target("... each further fused map, of 4", "one",
                     difference(f"{name}-4-maps", name, 4), 4, " ns")
        yield Target("... the first map", "one",
                     difference(f"{name}-1-map", name), 6, " ns")
        yield Target("... against Arrow C++'s exporter, how many times faster",
                     "one", ratio(f"arrow/{window}/producer", name), 30, " x",
                     least=True)


def lane_targets():
    for mode, floor, where in (("one", "ring", "one core"),
                               ("two", "spinning-ring", "two cores")):
        for window in WINDOWS:
            yield Target(
                f"Lane to `for_each`, window {window}, {where}: against a "
                f"{'spinning ' if mode == 'two' else ''}ring by hand", mode,
                ratio(f"lane/{window}/uvarrow", f"lane/{window}/{floor}"),
                1.5 if mode == "one" and window > 8 else 1.25, " x")
        if mode == "one":
            yield Target("... window 64, against Arrow C++ at both ends, how "
                         "many times faster", mode,
                         ratio("arrow/64/both", "lane/64/uvarrow"), 30, " x",
                         least=True)


def outlet_targets(figures):
    """Where the ring by hand is faster than the interface alone can be, 40 ns
    more than the ring are allowed."""
    own = median(figures, "one", "drive/64/uvarrow")
    for mode, floor, where in (("one", "ring", "one core"),
                               ("two", "spinning-ring", "two cores")):
        for window in WINDOWS:
            names = f"outlet/{window}/uvarrow", f"outlet/{window}/{floor}"
            least = median(figures, mode, names[1])
            title = (f"`to_blocking`, window {window}, {where}: against a "
                     f"{'spinning ' if mode == 'two' else ''}ring by hand")
            if least is not None and own is not None and least < own:
                yield Target(title + ", more", mode, difference(*names), 40,
                             " ns")
            else:
                yield Target(title, mode, ratio(*names),
                             1.3 if mode == "one" and window > 8 else 1.5, " x")


def other_targets():
    for workers in (1, 2):
        yield Target(
            f"Decode on {workers} worker{'s' * (workers > 1)}, in order: "
            "against decode time / workers", "two",
            lambda get, n=workers: get(f"decode/{n}/uvarrow") * n
            / get("decode/1/hand"), 1.2, " x")
    for case, title in (("numbers", "ten columns of integers"),
                        ("texts", "integers and texts with nulls")):
        yield Target(f"A batch of 800 KB as Arrow IPC, {title}", "one",
                     lambda get, case=case: get(f"ipc/{case}"), 1000, " ns",
                     needs="ipc/")
    yield Target("A batch of 1,024 flights as CSV: against Arrow C++", "one",
                 ratio("formats/csv/uvarrow", "formats/csv/arrow"), 1, " x",
                 needs="formats/")
    yield Target("A blocking stream, opened, read once and closed, 64 "
                 "outstanding", "one",
                 lambda get: get("open/64/uvarrow"), 5000, " ns")
    yield Target("... one outstanding: against `uv_queue_work`", "one",
                 ratio("open/1/uvarrow", "open/1/queue_work"), 1.05, " x")
    yield Target("10,000 streams: heap of a waiting one", "one",
                 lambda get: get("many/waiting/bytes"), 2048, " bytes")
    yield Target("10,000 streams: threads", "one",
                 lambda get: get("many/waiting/threads"), 0, "")
    yield Target("10,000 streams: a batch, against one stream", "one",
                 ratio("many/10000/uvarrow", "many/1/uvarrow"), 1.5, " x")
    yield Target("10 million batches: growth after the first", "one",
                 lambda get: get("steady/growth"), 256, " KiB")
    for what in ("ahead", "taking"):
        yield Target(f"A small query beside 200 sources ({what}), two workers: "
                     "p99 more than beside none, in calls of `get_next`", "two",
                     lambda get, name=f"beside/2/{what}":
                     (get(f"{name}/p99") - get("beside/2/none/p99"))
                     / get(f"{name}/get_next"), 3, "")
    yield Target("A small query beside 200 sources (ahead), 64 workers, nice "
                 "10: p50 against that beside none", "two",
                 ratio("beside/64/ahead-nice-10/p50", "beside/64/none/p50"), 3,
                 " x")
    yield Target("Timer of 1 ms beside a source that blocks: later than on an "
                 "empty loop, p99", "two",
                 difference("heartbeat/uvarrow", "heartbeat/empty"), 200,
                 " us")


def stage_targets():
    """The stages that do not move data, and take; then stages that do, and
    stages with many inputs."""
    for stage in STAGES:
        yield Target(f"`{stage}` on the loop thread: more than the chain "
                     "without it", "one",
                     difference(f"stages/{stage}", "stages/none"), 40, " ns")
    for place, where in (("loop", "on a loop of the host"),
                         ("thread", "on a thread of the runtime"),
                         ("turns", "between turns of the host")):
        for window in (64, 256):
            name = f"take/{place}/{window}"
            yield Target(f"`take`, window {window}, {where}: against "
                         "`for_each`", "one",
                         ratio(f"{name}/take", f"{name}/for_each"), 1.1, " x")
    yield Target("`merge` of 1,000 streams: largest share against the smallest",
                 "one", lambda get: get("merge/1000/shares"), 1.1, " x")
    yield Target("... a batch, against one of 2 streams", "one",
                 ratio("merge/1000", "merge/2"), 2, " x")
    yield Target("16 streams, each read by a worker: largest share against the "
                 "smallest", "one", lambda get: get("many/16/shares"), 1.1,
                 " x")
    yield Target("`rebatch`, 1 Mi rows split to 1,024: a batch of one column",
                 "one", lambda get: get("rebatch/split/1-column"), 60, " ns")
    yield Target("`rebatch`, 8 columns joined: speed against `memcpy`", "one",
                 ratio("rebatch/join/memcpy", "rebatch/join/uvarrow"), 0.8,
                 " x", least=True, needs="rebatch/")
    yield Target("`tee` to 3: a batch of the source, against one consumer",
                 "one", ratio("branches/3/uvarrow", "branches/1/uvarrow"), 3,
                 " x", needs="branches/")
    yield Target("10 million batches through a chain of stages: growth after "
                 "the first", "one", lambda get: get("steady/stages"), 256,
                 " KiB")


def event_targets():
    yield Target("`ready`, an event that is complete already: loop time", "one",
                 difference("events/complete/event",
                            "events/complete/no-stage"), 200, " ns")
    for way in ("callback", "polling"):
        title = f"4,096 events outstanding, by {way}: "
        name = f"events/4096/{way}"
        yield Target(title + "loop time of one, batch and all", "one",
                     lambda get, name=name: get(f"{name}/loop"), 1000, " ns")
        for mode, where in (("one", "one core"), ("two", "two cores")):
            yield Target("... wake-ups when they complete together, " + where,
                         mode, lambda get, name=name: get(f"{name}/wakes"), 64,
                         "")
        yield Target("... threads, against one event", "one",
                     difference(f"{name}/threads", f"events/1/{way}/threads"),
                     0, "")
    yield Target("64 streams with 64 events each: threads, against one", "one",
                 difference("events/64x64/callback/threads",
                            "events/1/callback/threads"), 0, "")
    yield Target("A wait of 100 ms, by polling: of a core", "one",
                 lambda get: get("events/waiting/polling"), 3, " %")


def inside_targets(title, name, call):
    """A driver with one lock for all its calls takes 5 ms for each."""
    for way, what in (("array", "event to loop"),
                      ("record", "`uva_array_record()`")):
        yield Target(
            f"{title}, {what}, while another thread is in `{call}()`: p99",
            "two", lambda get, way=way: get(f"{name}/inside/{way}/p99"), 2000,
            " us", needs=f"{name}/inside")


def opencl_targets():
    for mode, where in (("one", "one core"), ("two", "two cores")):
        for way, title in (("ready", "`ready`"), ("array", "`uva_array_wait`")):
            yield Target(
                f"OpenCL event to loop, {title}, {where}: p50 against "
                "`clSetEventCallback` and an eventfd by hand", mode,
                ratio(f"opencl/latency/{way}/p50", "opencl/latency/hand/p50"),
                1.3, " x", needs="opencl/")
    yield from inside_targets("OpenCL", "opencl", "clFinish")
    yield Target("A wait of 100 ms, by OpenCL's callback: of a core", "one",
                 lambda get: get("opencl/waiting"), 3, " %", needs="opencl/")


def cuda_targets():
    for way, title in (("ready", "`ready`"), ("array", "`uva_array_wait`")):
        yield Target(
            f"CUDA event to loop, {title}: p50 against the best by hand", "two",
            lambda get, way=way: get(f"cuda/latency/{way}/p50")
            / min(get("cuda/latency/hand-callback/p50"),
                  get("cuda/latency/hand-polling/p50")), 1.1, " x",
            needs="cuda/")
    for way, title in (("ready", "`ready`"), ("array", "`uva_array_wait`")):
        yield Target(
            f"CUDA event to loop, {title}, while a release of the program's "
            "blocks: p99", "two",
            lambda get, way=way: get(f"cuda/beside/{way}/p99"), 5000, " us",
            needs="cuda/beside")
    yield from inside_targets("CUDA", "cuda", "cuStreamSynchronize")
    yield Target("CUDA to the host, 64 MiB a batch: against a bare loop into "
                 "pinned memory", "two",
                 ratio("cuda/to-host/uvarrow", "cuda/to-host/hand"), 0.9, " x",
                 least=True, needs="cuda/")
    yield Target("A wait of 100 ms for an event of CUDA: of a core", "two",
                 lambda get: get("cuda/waiting"), 3, " %", needs="cuda/")


def targets(figures):
    yield from flights_targets()
    yield from drive_targets()
    yield from lane_targets()
    yield from outlet_targets(figures)
    yield from other_targets()
    yield from stage_targets()
    yield from event_targets()
    yield from opencl_targets()
    yield from cuda_targets()


# ---- the summary ------------------------------------------------------------

def summary(results):
    """The kept part of a measurement"""
    measures = results["figures"]
    figures = {mode: {name: [figure["unit"], *spread(figure["rounds"])]
                      for name, figure in named.items()}
               for mode, named in measures.items()}
    return {**results, "figures": figures,
            "targets": [target.measured(measures)
                        for target in targets(figures)]}


def missing(results):
    """Returns the titles of required targets without a figure. Arrow C++ and a
    device may be missing, so their targets are not required without them."""
    figures = results["figures"]
    names = [name for mode in figures.values() for name in mode]
    return [t.title for t in targets(summary(results)["figures"])
            if len(t.measured(figures)) == 1
            and any(name.startswith(t.needs) for name in names)]


# ---- the page ---------------------------------------------------------------

def program_rows(kept, counts, program):
    figures = kept["figures"]
    names = dict.fromkeys(name for mode in figures.values() for name in mode
                          if name.split("/")[0] == program)
    for name in names:
        yield [f"`{name}`", cell(figures, "one", name),
               cell(figures, "two", name),
               f"{counts[name]:,}" if name in counts else ""]


def program_lines(kept, counts, program):
    if program in shapes.SHAPED:
        yield from shapes.program_lines(kept["figures"], counts, program)
        return
    rows = list(program_rows(kept, counts, program))
    if rows:
        yield from table(["Case", "One core", "Two cores", "Instructions"], rows)
        yield ""


def profile_lines(kept):
    """Shows which functions the instructions are spent in, one column for each
    case."""
    profiles = {case: rows[:PROFILE_ROWS]
                for case, rows in kept["profiles"].items()}
    if not profiles:
        return
    yield from ("", "## Profiles", "",
                "Which functions the instructions of one more batch are spent "
                f"in: the first {PROFILE_ROWS} of each case.", "")
    columns = [[f"{count} `{name}`" for name, count in rows]
               for rows in profiles.values()]
    longest = max(len(column) for column in columns)
    rows = ([column[i] if i < len(column) else "" for column in columns]
            for i in range(longest))
    yield from table([f"`{case}`" for case in profiles], rows)


def target_rows(kept):
    """One row for each target that was measured, in the order of targets()"""
    waiting = list(kept["targets"])
    for target in targets(kept["figures"]):
        if waiting and waiting[0][0] == target.title:
            values = waiting.pop(0)[1:]
            if values:
                yield target.row(*values)


class Reached:
    """A row of the table for users: `value(get, count)` of medians and of
    instructions must be at most `limit`."""

    def __init__(self, title, mode, value, limit, unit):
        self.title, self.mode, self.value = title, mode, value
        self.limit, self.unit = limit, unit

    def row(self, kept, counts):
        """Returns None without a figure"""
        figures = kept["figures"][self.mode]
        try:
            value = self.value(lambda name: figures[name][1],
                               lambda name: counts[name])
        except KeyError:
            return None
        past = value - self.limit
        return [self.title, f"{number(self.limit)}{self.unit}",
                number(value) + self.unit,
                "yes" if past <= 0 else f"**no, by {number(past)}{self.unit}**"]


def reached_opening():
    yield Reached("Opening a blocking stream, one batch, closing; 64 "
                  "outstanding", "one",
                  lambda get, count: get("open/64/uvarrow"), 5000, " ns")
    yield Reached("... instructions", "one",
                  lambda get, count: count("open/64/uvarrow"), 5000, "")
    yield Reached("... against `uv_queue_work`", "one",
                  lambda get, count: get("open/64/uvarrow")
                  / get("open/64/queue_work"), 2, " x")
    yield Reached("... one outstanding: against `uv_queue_work`", "one",
                  lambda get, count: get("open/1/uvarrow")
                  / get("open/1/queue_work"), 0.55, " x")
    yield Reached("A stream that is stopped: heap", "one",
                  lambda get, count: get("many/stopped/bytes"), 4096, " bytes")
    yield Reached("... one just closed, while it is in quarantine", "one",
                  lambda get, count: get("many/closed/bytes"), 256, " bytes")


def reached_batches():
    for case, floor, what, limit in (
            ("uvarrow-building", "hand", "both build their arrays", 2.5),
            ("uvarrow", "hand-built", "arrays built before", 2.5),
            ("uvarrow-on-loop", "hand", "`on_loop` source, both build", 2)):
        yield Reached(f"One thread, 64 requests open, {what}: against a producer "
                      "by hand", "one", lambda get, count, names=(case, floor):
                      get(f"drive/64/{names[0]}") / get(f"drive/64/{names[1]}"),
                      limit, " x")
    yield Reached("... each further map", "one", lambda get, count:
                  (get("drive/64/uvarrow-4-maps") - get("drive/64/uvarrow-1-map"))
                  / 3, 4, " ns")
    yield Reached("... instructions of each further map", "one",
                  lambda get, count:
                  (count("drive/64/uvarrow-4-maps")
                   - count("drive/64/uvarrow-1-map")) / 3, 30, "")
    for program, title, limit in (("lane", "Lane to `for_each`", 1.5),
                                  ("outlet", "`to_blocking`", 1.3)):
        for window in (64, 512):
            name = f"{program}/{window}/"
            yield Reached(f"{title}, window {window}: against a ring by hand",
                          "one", lambda get, count, name=name:
                          get(name + "uvarrow") / get(name + "ring"), limit,
                          " x")
            yield Reached("... instructions of a batch", "one",
                          lambda get, count, name=name:
                          count(name + "uvarrow"), 450, "")


def reached_on_two_cores():
    yield Reached("Timer of 1 ms beside a source that blocks: later than on an "
                  "empty loop, p99", "two",
                  lambda get, count: get("heartbeat/uvarrow")
                  - get("heartbeat/empty"), 200, " us")
    yield Reached("... the floor: later than beside a thread that only wakes "
                  "the loop", "two",
                  lambda get, count: get("heartbeat/uvarrow")
                  - get("heartbeat/bell"), 200, " us")


def reached_lines(kept, counts):
    """The table for users, without the rows that have no figure"""
    rows = [reached.row(kept, counts) for reached in
            (*reached_opening(), *reached_batches(), *reached_on_two_cores())]
    yield from ("", "## Figures for a user of the library", "",
                "The limit of each figure, and the figure: ratios and differences "
                "of medians,\nwhich differ a little from the median ratios "
                "above. Where the rest is spent is\nexplained at the end of the "
                "page.", "")
    yield from table(["Figure", "At most", "Reached", ""],
                     [row for row in rows if row])


def counted_by(counted):
    return (f"Instructions are the sum over all threads for one more batch, as "
            f"callgrind counts\nthem, of {counted['code']}.")


def page(kept, counted):
    """`kept` is a summary, `counted` what run.py has counted."""
    counts = counted["counts"].get("gcc-static", {})
    lines = [HEAD.format(rounds=kept["rounds"], passes=kept["passes"],
                         times=kept["rounds"] * kept["passes"],
                         **kept["machine"]),
             "## Targets", ""]
    lines += table(["Figure", "Measured", "Least to most", "Target", ""],
                   target_rows(kept))
    lines += reached_lines(kept, counts)
    lines += ["", "## Figures", "", "Least and most in brackets.",
              counted_by(counted)]
    for program, title in PROGRAMS.items():
        rows = list(program_lines(kept, counts, program))
        if rows:
            lines += ["", f"### {title}", "", *rows[:-1]]
    lines += shapes.library_lines(counted)
    lines += list(shapes.growth_lines(kept["figures"], counts))[:-1]
    lines += profile_lines(counted)
    if os.path.exists(NOTES):
        with open(NOTES, encoding="utf-8") as notes:
            lines += ["", notes.read().rstrip()]
    return "\n".join(lines) + "\n"
