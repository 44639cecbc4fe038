"""Documents by HTTP: `uvarrow serve` answers with the rows of files, by a driver
whose tables they are."""

import pathlib
import subprocess
import tempfile
import urllib.error
import urllib.request

import ours


class Served:
    """Runs inside of a with statement; `written` are {name: bytes}."""

    def __init__(self, written):
        self.written = written

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        for name, data in self.written.items():
            (pathlib.Path(self.folder.name) / f"{name}.arrows").write_bytes(data)
        self.process = subprocess.Popen(
            [ours.BUILD / "tools/uvarrow", "serve", "--quiet", "--writable", "--listen",
             "127.0.0.1:0", "--driver",
             ours.module("adbc_driver_files")._name, self.folder.name],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if "listening at" not in line:
            self.__exit__()
            raise ours.Refused(line)
        self.address = f"http://127.0.0.1:{int(line.rsplit(':', 1)[1])}"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        with self.process:
            self.process.stderr.read()
        self.folder.cleanup()

    def get(self, name):
        """The body of an answer."""
        try:
            with urllib.request.urlopen(urllib.request.Request(
                    f"{self.address}/query", name.encode(),
                    {"Content-Type": "application/sql"})) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise ours.Refused(error.read().decode()) from error
