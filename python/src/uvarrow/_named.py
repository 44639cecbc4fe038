# SPDX-License-Identifier: Apache-2.0
"""Parameters by name for drivers that bind in order: the names in a query become
places. And what the first word of a query tells about its outcome."""
import re

_SKIPPED = r"""
    \b[eE]'(?:[^'\\]|\\.|'')*'      # a text with backslashes
    | '(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*`
    | --[^\n]* | /\*.*?\*/
    | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)
    | ::                            # a cast
"""
_TOKEN = re.compile(_SKIPPED + r"| (?<![\w:@$])[:@$](?P<name>[A-Za-z_]\w*)",
                    re.S | re.X)
_FIRST = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?\*/)*([A-Za-z]*)", re.S)
_RETURNS = re.compile(r"\breturning\b", re.I)
_COUNTED = {"insert", "update", "delete", "merge", "replace"}
_SILENT = {"create", "drop", "alter", "truncate", "savepoint", "release",
           "rollback", "begin", "start", "commit"}


def in_order(sql, names, numbered):
    """(sql, order): `:name`, `@name` and `$name` for each of `names` become `$1`,
    or without `numbered` `?`; `order` has their names. ValueError if the query
    lacks one."""
    order = []

    def place(match):
        name = match["name"]
        if name not in names: # also None: no parameter
            return match[0]
        if not numbered:
            order.append(name)
            return "?"
        if name not in order:
            order.append(name)
        return f"${order.index(name) + 1}"

    sql = _TOKEN.sub(place, sql)
    for name in names:
        if name not in order:
            raise ValueError(f"uvarrow: the query has no parameter {name!r}")
    return sql, order


def outcome(sql):
    """"rows", "count" of changed rows, or "none": as the text says it."""
    word = _FIRST.match(sql)[1].lower()
    if word in _SILENT:
        return "none"
    return "count" if word in _COUNTED and not _RETURNS.search(sql) else "rows"
