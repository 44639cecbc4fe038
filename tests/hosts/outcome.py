# SPDX-License-Identifier: Apache-2.0
"""How a program of this folder ends: it is skipped, or keeps the rows of its table."""
import json
import sys

SKIP = 77


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def keep(rows, path):
    """Writes the rows for table.py, unless there is no path."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")
