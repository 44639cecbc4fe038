# SPDX-License-Identifier: Apache-2.0
"""Turns the measurements of a GPU bundle into a section of docs/benchmarks.md,
which stands between two marks. scripts/gpu_report writes the file KEPT:

    {vendor: {"device", "driver", "about", "began", "rounds": {name: {"unit",
     "rounds": [value, ...]}}}}
"""
import json
import os
import textwrap

import report

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs",
                    "benchmarks_gpu.json")
BEGIN = "<!-- scripts/gpu_report: begin -->\n"
END = "<!-- scripts/gpu_report: end -->\n"

NONE = """No GPU was measured so far. `scripts/gpu_bundle` makes a folder that
measures on a machine that has one, and `scripts/gpu_report` writes the result
here."""
TARGETS = {"cuda": report.cuda_targets, "opencl": report.opencl_targets}


def targets_of(vendor, figures):
    for target in TARGETS.get(vendor, tuple)():
        values = target.measured({"one": {}, "two": figures})[1:]
        if values:
            yield target.row(*values)


def figure_row(name, figure):
    middle, *ends = report.spread(figure["rounds"])
    row = [f"`{name}`", f"{report.number(middle)} {figure['unit']}"]
    return row + [f"{report.number(ends[0])} to {report.number(ends[1])}"
                  if ends else ""]


def vendor_lines(vendor, kept):
    yield from ("", f"### {kept['device']}", "")
    yield from textwrap.wrap(
        f"Measured on {kept['began'][:10]} by {kept['about']}, with "
        f"{kept['driver']}; the medians of "
        f"{max(len(f['rounds']) for f in kept['rounds'].values())} runs.", 79)
    rows = list(targets_of(vendor, kept["rounds"]))
    if rows:
        yield from ("", *report.table(["What", "Measured", "Least to most",
                                       "Target", ""], rows))
    yield from ("", *report.table(
        ["Case", "Median", "Least to most"],
        [figure_row(*item) for item in sorted(kept["rounds"].items())]))


def section(path=KEPT):
    """The section, with its marks"""
    kept = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
    lines = ["## On GPUs", ""]
    if not kept:
        lines += textwrap.wrap(NONE, 79)
    for vendor in sorted(kept):
        lines += vendor_lines(vendor, kept[vendor])
    return BEGIN + "\n".join(lines) + "\n" + END
