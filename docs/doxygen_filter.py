#!/usr/bin/env python3
"""Doxygen's input filter: converts the plain comments of the headers to its
markup, so that the headers need none.

The second comment of a file becomes its description; a remark behind a member
becomes /**< */, one above a member /** */. In a function's comment the return
value, the threads and the clauses become sections. Reserved members are left
out.
"""
import re
import sys

HEAD = "/* SPDX-License-Identifier: Apache-2.0 */\n/* "
OPAQUE = re.compile(r"^struct (\w+);\s*/\* (.*) \*/")
RETURNS = re.compile(r"(?<!/\*\*)[ \n](?:\* )?Returns(?= )")


def sections(comment):
    """The comment, with sections for result, threads and clauses."""
    text = comment
    for title in ("Thread", "Clauses"):
        text = re.sub(rf"\s+(?:\* )?{title}:",
                      f"\n * \\\\par {title}\n *", text)
    return RETURNS.sub(r"\n * \\return", text)


def marked(text):
    text = text.replace(HEAD, "/** \\file\n * ", 1)
    text = re.sub(r"/\*\*[^<](?:[^*]|\*(?!/))*\*/",
                  lambda found: sections(found.group()), text)
    depth = 0
    for line in text.splitlines():
        if re.search(r"\breserved\[\d+\]( UVA_0)?;", line):
            line = ""
        line = OPAQUE.sub(r"/** \2 */\nstruct \1;", line)
        line = re.sub(r"(\S[ \t]*)/\*(?!\*)(?! ----)", r"\1/**<", line)
        if depth > 0:
            line = re.sub(r"^(\s+)/\*(?!\*)", r"\1/**", line)
        code = re.sub(r"/\*.*", "", line)
        if not re.match(r"^\s*\*", line) and 'extern "C"' not in line:
            depth = max(0, depth + code.count("{") - code.count("}"))
        yield line


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        source = file.read()
    print(source if sys.argv[1].endswith(".md") else
          "\n".join(marked(source)))
