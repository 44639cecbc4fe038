# SPDX-License-Identifier: Apache-2.0
"""Numbers and tables as the pages have them."""
import textwrap


def wrapped(text, **names):
    """Lines of a page, with the names filled in"""
    return textwrap.wrap(" ".join(text.split()).format(**names), 80,
                         break_on_hyphens=False, break_long_words=False)


def medians(rounds):
    """The begin of a sentence about figures of so many rounds"""
    return "One round" if rounds == 1 else f"Medians of {rounds} rounds"


def number(x):
    if abs(x) >= 100 or x == int(x):
        return f"{x:,.0f}"
    return f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}"


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "|".join("---" if i == 0 else "--:"
                         for i in range(len(head))) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def cell(figures, mode, name):
    figure = figures[mode].get(name)
    if not figure:
        return ""
    unit, middle, *ends = figure
    text = f"{number(middle)} {unit}"
    if ends:
        text += f" ({number(ends[0])} to {number(ends[1])})"
    return text
