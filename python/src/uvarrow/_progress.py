# SPDX-License-Identifier: Apache-2.0
"""A bar that says how far a stream is, in a terminal or a notebook."""
import sys
import time
import weakref

_WIDTH = 24
_SECONDS = 0.1


def _is_notebook():
    shell = sys.modules.get("IPython")
    shell = None if shell is None else shell.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class _Terminal:
    """Writes over one line."""

    def __init__(self, file):
        self._file = file
        self._length = 0

    def show(self, text, is_last):
        end = "\n" if is_last else ""
        try:
            self._file.write(f"\r{text.ljust(self._length)}{end}")
            self._file.flush()
        except (OSError, ValueError): # it was closed
            pass
        self._length = len(text)


class _Notebook:
    """Writes over one output of a cell."""

    def __init__(self):
        from IPython.display import display
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(self, text, is_last):
        self._handle.update({"text/plain": text}, raw=True)


def shows_on(file):
    """Where a bar goes; None: nowhere, as nobody looks on."""
    if file is None and _is_notebook():
        return _Notebook()
    file = sys.stderr if file is None else file
    is_terminal = getattr(file, "isatty", None)
    return _Terminal(file) if is_terminal is not None and is_terminal() else None


class Bar:
    """A function for trace()."""

    def __init__(self, stream, text, where, clock=time.monotonic):
        self._stream = weakref.ref(stream)
        self._text = text
        self._where = where
        self._clock = clock
        self._begin = clock()
        self._next = 0.0
        self._rows = self._expected = self._read = 0

    def __call__(self, kind, count, code, seconds):
        now = self._clock()
        if kind != "end" and (kind != "batch" or now < self._next):
            return
        self._next = now + _SECONDS
        self._look()
        self._where.show(self.line(now - self._begin), kind == "end")

    def _look(self):
        stream = self._stream()
        stages = [] if stream is None else stream.stats()
        sources = [one for one in stages if one.rows_expected]
        if stages:
            self._rows = max(one.rows for one in stages)
            self._expected = sum(one.rows_expected for one in sources)
            self._read = sum(one.rows for one in sources)

    def line(self, seconds):
        head = f"{self._text}: " if self._text else ""
        rate = self._rows / seconds if seconds > 0 else 0
        tail = f"{self._rows:,} rows, {rate:,.0f} rows/s, {seconds:.1f} s"
        if not self._expected:
            return head + tail
        part = min(self._read / self._expected, 1.0)
        bar = ("#" * round(part * _WIDTH)).ljust(_WIDTH, ".")
        return f"{head}[{bar}] {part:4.0%} {tail}"
