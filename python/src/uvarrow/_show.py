# SPDX-License-Identifier: Apache-2.0
"""Batches, streams and pools as text, and batches as frames of other
libraries."""
import csv
import html
import io
import os

from . import _core, _text

_ROWS = 5
_COLUMNS = 12
_WIDTH = 24


def to_pandas(batch):
    return batch.to_pyarrow().to_pandas()


def to_polars(batch):
    import polars
    return polars.DataFrame(batch)


# ---- batches ----------------------------------------------------------------

def _head(batch):
    def many(count, what):
        return f"{count:,} {what}{'' if count == 1 else 's'}"

    return (f"uvarrow.Batch of {many(batch.num_rows, 'row')}, "
            f"{many(batch.num_columns, 'column')}")


def _cut(text):
    return text if len(text) <= _WIDTH else text[:_WIDTH - 1] + "\u2026"


def _table(batch):
    """The names and types of columns, and the first rows, as texts: none if they
    cannot be read here."""
    fields = batch.schema._fields[3][:_COLUMNS]
    names = [f"{_cut(field[0])}: {_cut(_text.type_text(field))}"
             for field in fields]
    if batch.num_columns == 0:
        return names, []
    try:
        text = _core.csv(batch, _ROWS).decode(errors="replace")
    except (OSError, ValueError): # on a device, closed, a type without a text
        return names, []
    rows = list(csv.reader(io.StringIO(text)))[1:]
    return names, [[_cut(cell) for cell in row[:_COLUMNS]] for row in rows]


def batch_text(batch):
    """A line for the batch, one for its columns, and the first rows."""
    names, rows = _table(batch)
    more = batch.num_columns > _COLUMNS
    widths = [max(map(len, column)) for column in zip(names, *rows)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths))
             .rstrip() + (" | \u2026" if more else "") for row in [names, *rows]]
    if rows and batch.num_rows > len(rows):
        lines.append("\u2026")
    return "\n".join([f"<{_head(batch)}>", *(lines if names else ())])


def batch_html(batch):
    """The same as a table."""
    names, rows = _table(batch)

    def line(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>"
                                for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return (f"<table><caption>{html.escape(_head(batch))}</caption>"
            f"<thead>{line(names, 'th')}</thead><tbody>{body}</tbody></table>")


# ---- streams and pools ------------------------------------------------------

def stream_text(stream, name):
    stages = stream.stats()
    parts = [f"<uvarrow.Stream{f' {name!r}' if name else ''}, {stream._state()}"]
    if stages:
        parts.append(": " + " > ".join(one.name for one in stages))
        parts.append(f"; {stages[-1].batches:,} batches, {stages[-1].rows:,} rows")
    return "".join(parts) + ">"


def pool_text(pool):
    """Without the URI, which may have a password."""
    driver = os.path.basename(str(pool._how[0] or "driver of its URI"))
    text = f"<uvarrow.adbc.Pool of {driver}"
    if pool._closed:
        return text + ", closed>"
    try:
        counts = pool.stats()
    except RuntimeError: # no event loop runs here
        return text + ">"
    return text + (f", {counts['used']} connections used, {counts['idle']} idle, "
                   f"{counts['waiting']} queries waiting>")
