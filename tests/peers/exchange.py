"""What is exchanged with a peer, and what came of it.

A peer is an object with `name`, `version`, `forms` (some of "stream", "file") and
`codecs`, and the functions
    read_all({name: path}, form) -> {name: document or error}
    write_all({name: document}, form, codec, folder) -> {name: path or error}
and, if it has the C interface, `passed(stream) -> stream` and, where `drains`,
`drained(stream, most) -> rows`, which raise Refused.
"""

import ctypes
import dataclasses
import fnmatch
import json
import pathlib
import tempfile
import time

import alone
import cdata
import columns
import every_type
import http_answers
import ours

SEED = 1
SUFFIX = {"stream": ".arrows", "file": ".arrow"}
FORMS = {"stream": ours.STREAM, "file": ours.FILE}


@dataclasses.dataclass
class Result:
    check: str     # what was tried
    document: str  # with which document
    text: str      # "" if it went well


def documents():
    return {name: columns.from_json(json.loads(json.dumps(document)))
            for name, document in every_type.documents(SEED).items()}


def judged(expected, found, compare):
    if isinstance(found, Exception):
        return str(found) or repr(found)
    try:
        return compare(expected, found) or ""
    except (AssertionError, LookupError, TypeError, ValueError) as error:
        return f"its values: {error!r}"  # they contradict each other


def tried(run, *arguments):
    """The result of a call, or the error."""
    try:
        return run(*arguments)
    except (ours.Refused, cdata.Failed, OSError, ValueError, KeyError,
            AssertionError) as error:
        return error


# ---- Arrow IPC --------------------------------------------------------------

def writes_ours(given, form, codec, folder):
    """Our files, by io.h or, compressed, by the command from a file of io.h."""
    paths = {}
    for name, document in given.items():
        path = folder / (name + SUFFIX[form])
        plain = ours.written(document, FORMS[form],
                             0 if codec == "none" else ours.CODECS.index(codec))
        path.write_bytes(plain)
        paths[name] = path
    return paths


def peer_reads(peer, given, form, codec, folder):
    paths = writes_ours(given, form, codec, folder)
    found = peer.read_all(paths, form)
    for name, document in given.items():
        yield Result(f"reads {form} {codec}", name,
                     judged(document, found[name], peer.difference))


def peer_reads_served(peer, given):
    """What `uvarrow serve` answers."""
    if "stream" not in peer.forms:
        return
    with tempfile.TemporaryDirectory() as folder, http_answers.Served(
            {name: ours.written(document, ours.STREAM)
             for name, document in given.items()}) as server:
        paths = {name: pathlib.Path(folder) / f"{name}.arrows" for name in given}
        for name, path in paths.items():
            path.write_bytes(server.get(name))
        found = peer.read_all(paths, "stream")
    for name, document in given.items():
        yield Result("reads by HTTP", name,
                     judged(document, found[name], peer.difference))


def rewritten(path, form, codec, folder):
    """The peer's file, through `uvarrow query --from`."""
    out = folder / (path.stem + ".rewritten")
    out.write_bytes(ours.by_command(
        path, "arrow-file" if form == "file" else "arrow", codec))
    return ours.read(out)


def peer_writes(peer, given, form, codec, folder):
    paths = peer.write_all(given, form, codec, folder)
    for number, (name, document) in enumerate(given.items()):
        path = paths[name]
        found = path
        if not isinstance(path, Exception):
            found = tried(ours.read, path, number % 2 == 1)
        yield Result(f"writes {form} {codec}", name,
                     judged(document, found, peer.difference))
        if codec == "none" and not isinstance(found, Exception):
            again = tried(rewritten, path, form,
                          ours.CODECS[number % 3], folder)
            yield Result(f"command {form}", name,
                         judged(found, again, columns.difference))


def exchange_ipc(peer, given):
    for form in peer.forms:
        for codec in peer.codecs:
            for direction in peer_reads, peer_writes:
                with tempfile.TemporaryDirectory() as folder:
                    yield from direction(peer, given, form, codec,
                                         pathlib.Path(folder))


# ---- the C stream interface -------------------------------------------------

PLACES = {"on the loop": 2, "on a worker": 1}


def offered(peer, document):
    """A stream of uvarrow's. A peer that keeps the interpreter as it reads gets one
    that needs no other thread of Python."""
    if getattr(peer, "keeps_python", False):
        return ours.passed(ours.decoded(ours.written(document, ours.STREAM)))
    return ours.passed(cdata.export_stream(document), place=1)


def through(peer, document):
    """uvarrow, the peer, uvarrow."""
    return cdata.import_stream(
        ours.passed(peer.passed(offered(peer, document)), place=2))


def cut(peer, document):
    """A stream that ends in the midst of a batch, whose error must reach the end of
    the chain whole."""
    data = ours.written(document, ours.STREAM)[:-100]
    try:
        cdata.import_stream(ours.decoded(data))
    except cdata.Failed as error:
        expected = error.args[1]
    try:
        cdata.import_stream(ours.passed(peer.passed(
            ours.passed(ours.decoded(data)))))
    except (cdata.Failed, ours.Refused) as error:
        return "" if expected in error.args[-1] else repr(error)
    return "the error is lost"


def failing(peer, document, after):
    """An error of ours after so many batches, which must reach the end of the
    chain whole, behind the batches before it."""
    stream = ours.passed(cdata.export_stream(document, fail=after))
    stream = ours.passed(peer.passed(stream))
    try:
        cdata.import_stream(stream)
    except cdata.Failed as error:
        return "" if "it broke: ü" in error.args[1] else repr(error)
    return "the error is lost"


def early(peer, document, most):
    """Both ends release a stream before its end."""
    stream = ours.passed(peer.passed(
        ours.passed(cdata.export_stream(document))))
    cdata.import_stream(stream, most)
    rows = peer.drained(ours.passed(cdata.export_stream(document)), most)
    expected = sum(count for count, _ in document.batches[:most])
    return "" if rows == expected else f"{rows} rows, not {expected}"


def settled():
    """How many structs of ours stay when all threads had their time: a release
    may come from a worker."""
    until = time.monotonic() + 10
    while cdata.alive() and time.monotonic() < until:
        time.sleep(0.01)
    return cdata.alive()


def exchange_streams(peer, given):
    for name, document in given.items():
        if name in getattr(peer, "crashes", ()):
            yield Result("C stream", name, alone.text(peer, name))
            continue
        found = tried(through, peer, document)
        yield Result("C stream", name,
                     judged(document, found, peer.difference))
    document = given["int32"]
    if getattr(peer, "keeps_python", False):
        yield Result("C stream, error", "in the midst of a batch",
                     str(tried(cut, peer, document)))
        return
    for after in range(len(document.batches) + 1):
        found = tried(failing, peer, document, after)
        yield Result("C stream, error", f"after {after} batches",
                     str(found))
    for most in range(len(document.batches) * peer.drains):
        found = tried(early, peer, document, most)
        yield Result("C stream, early release", f"after {most} batches",
                     str(found))
    left = settled()
    yield Result("C stream, release", "all documents",
                 f"{left} structs stay" if left else "")


# ---- streams of devices -----------------------------------------------------

def through_device(peer, document, fail=None):
    """As through(), by streams of devices on the CPU."""
    out = cdata.DeviceStream()
    peer.call("peer_pass_device",
              ctypes.byref(ours.to_device(cdata.export_stream(document, fail))),
              ctypes.byref(out))
    return cdata.import_stream(ours.from_device(out))


def exchange_devices(peer, given):
    for name, document in given.items():
        found = tried(through_device, peer, document)
        yield Result("device stream", name,
                     judged(document, found, peer.difference))
    document = given["int32"]
    for after in range(len(document.batches) + 1):
        found = tried(through_device, peer, document, after)
        yield Result("device stream, error", f"after {after} batches",
                     "" if "it broke: ü" in str(found) else repr(found))


def exchange_folder(peer, given):
    """The same for a peer that is a program."""
    with tempfile.TemporaryDirectory() as folder:
        found = peer.pass_all(given, pathlib.Path(folder))
        for name, document in given.items():
            yield Result("C stream", name,
                         judged(document, found[name], peer.difference))


def exchange(peer):
    given = documents()
    results = list(exchange_ipc(peer, given))
    results += peer_reads_served(peer, given)
    if hasattr(peer, "passed"):
        results += exchange_streams(peer, given)
    if getattr(peer, "passes", False):
        results += exchange_folder(peer, given)
    if hasattr(peer, "library") and hasattr(peer.library, "peer_pass_device"):
        results += exchange_devices(peer, given)
    if hasattr(peer, "library") and hasattr(peer.library, "peer_start"):
        import asynchronous  # which needs this module
        results += asynchronous.exchange(peer, given)
    return results


# ---- known differences ------------------------------------------------------

def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


@dataclasses.dataclass
class Known:
    """A line of differences.txt."""
    check: str
    document: str
    text: str
    why: str

    def explains(self, result):
        return (fits(result.check, self.check.split("; ")) and
                fits(result.document, self.document.split()) and
                self.text in result.text)


def known(path, peer):
    """The lines of a peer: [NAME] begins them."""
    found, section = [], None
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line.strip() and not line.startswith("#") and section == peer:
            found.append(Known(*[part.strip() for part in line.split(" | ")]))
    return found
