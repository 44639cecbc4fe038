"""A peer that is a program of its own, which converts a folder of files.

    COMMAND read FOLDER FORM            NAME.arrow(s)  ->  NAME.json
    COMMAND write FOLDER FORM CODEC     NAME.json      ->  NAME.arrow(s)
    COMMAND echo FOLDER FORM CODEC      NAME.arrow(s)  ->  NAME.out.arrow(s)
    COMMAND pass FOLDER stream          NAME.arrows    ->  NAME.passed.arrows

The last one gives and takes a stream of the C interface. The JSON is that of the integration tests. Where a peer has none, or one that lacks
types, it writes again what it has read. A file that it cannot convert becomes
NAME.error, with the reason.
"""

import json
import os
import struct
import subprocess

import columns
import ours

SUFFIX = {"stream": ".arrows", "file": ".arrow"}
WRONG = (ArithmeticError, LookupError, OSError, TypeError, ValueError,
         struct.error, columns.Inexpressible)


class Folder:
    forms = "stream", "file"
    difference = staticmethod(columns.difference)

    def __init__(self, name, version, command, codecs=ours.CODECS,
                 reads="read", writes="write", passes=False):
        self.name, self.version = name, version
        self.command, self.codecs = command, codecs
        self.reads, self.writes, self.passes = reads, writes, passes

    def run(self, *words):
        subprocess.run([*self.command, *map(str, words)], check=True,
                       stdin=subprocess.DEVNULL)

    @staticmethod
    def result(folder, name, suffix, read=lambda path: path):
        error = folder / f"{name}.error"
        if error.exists():
            return ours.Refused(error.read_text(encoding="utf-8"))
        try:
            return read(folder / f"{name}{suffix}")
        except ours.Refused as refused:
            return refused
        except WRONG as wrong:
            return ours.Refused(f"its JSON: {wrong!r}")

    def read_all(self, paths, form):
        folder = next(iter(paths.values())).parent
        self.run(self.reads, folder, form, "none")
        suffix, read = (".json", columns.load) if self.reads == "read" else (
            ".out" + SUFFIX[form], ours.read)
        return {name: self.result(folder, name, suffix, read)
                for name in paths}

    def write_all(self, documents, form, codec, folder):
        from_json = self.writes == "write"
        for name, document in documents.items():
            if from_json:
                (folder / f"{name}.json").write_text(
                    json.dumps(columns.to_json(document)), encoding="utf-8")
            else:
                (folder / (name + SUFFIX[form])).write_bytes(
                    ours.written(document, int(form == "file")))
        self.run(self.writes, folder, form, codec)
        suffix = SUFFIX[form] if from_json else ".out" + SUFFIX[form]
        return {name: self.result(folder, name, suffix) for name in documents}

    def pass_all(self, documents, folder):
        """What came back of streams of the C interface."""
        for name, document in documents.items():
            (folder / f"{name}.arrows").write_bytes(
                ours.written(document, ours.STREAM))
        os.environ["UVA_ROWS_MODULE"] = ours.module("rows_module")._name
        self.run("pass", folder, "stream")
        return {name: self.result(folder, name, ".passed.arrows", ours.read)
                for name in documents}
