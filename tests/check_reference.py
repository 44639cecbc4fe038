#!/usr/bin/env python3
"""Fails when the comment of a public function lacks a mandatory part: its
effect, its result, the ownership of the Arrow structs passed to it, the
threads that may call it (`Thread:`), and on its last line the clauses it
relies on (`Clauses: AP-08, AP-09.`). Usage: check_reference.py [ROOT]

A clause id anywhere else in a comment fails, too, and so does a comment with more
than twelve lines without a blank one, and a header that docs/reference.md does not
list, or lists although it does not exist. docs/reference runs this check, and then
Doxygen, where every warning is an error.
"""
import glob
import os
import re
import sys

FUNCTION = re.compile(
    r"(?:/\*\*((?:[^*]|\*(?!/))*)\*/\s*)?"
    r"((?:UVA_MUST_CHECK\s+)?(?:UVA_API|UVA_INLINE|UVA_SUBJECT_API|static inline)\s"
    r"[^;{]*?(\w+)\(([^;{]*)\))")
COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*\*/")
THREADS = re.compile(r"Thread: (any|loop|builder)\b[^.]*\.$")
OWNING = re.compile(r"\b([Tt]akes?|[Gg]ives?|[Bb]orrow(?:s|ed)?|own(?:s|ed)?|"
                    r"[Cc]op(?:y|ies|ied)|[Rr]eleases?d?|[Ss]pends|[Mm]oves|"
                    r"caller's|caller holds|read)\b")
CLAUSE = re.compile(r"\b([A-Z]{1,2}-\d\d)\b")
LISTED = re.compile(r"\s*\bClauses: ([^.]*)\.\s*(?:\*/)?$")
STRUCTS = re.compile(r"(?<!const )struct (Arrow\w+) \*")

# The longest paragraph of a comment, in lines
PARAGRAPH = 12

# Headers and functions that rely on no clause of the Arrow document.
SILENT = ("adbc.h", "adbc_abi.h", "base.h", "io.h", "runtime.h", "tck.h")
SILENT_ON = ("uva_stream_acquire", "uva_stream_release",
             "uva_stream_get_info", "uva_stream_set_name",
             "uva_stream_from_error", "uva_stream_get_runtime",
             "uva_stream_is_dropped", "uva_stream_set_priority",
             "uva_stream_get_stats", "uva_group_new", "uva_group_add",
             "uva_group_on_done", "uva_group_release")


def plain(comment):
    return " ".join(re.sub(r"\n\s*\*(?!/)", " ", comment).split())


def misplaced(header, text):
    """Clauses that a comment names outside its last line."""
    for comment in COMMENT.findall(text):
        for clause in CLAUSE.findall(LISTED.sub("", plain(comment))):
            yield f"{header}: {clause} stands outside a line `Clauses:`"


def unbroken(header, text):
    """Comments with a paragraph that nobody reads to its end"""
    for comment in COMMENT.findall(text):
        parts = re.split(r"\n\s*\*\s*\n", comment)
        if max(part.count("\n") for part in parts) >= PARAGRAPH:
            yield (f"{header}: over {PARAGRAPH} lines without a blank one: "
                   f"{comment.splitlines()[0]}")


def unlisted(root, headers):
    """Differences between the headers and the table of docs/reference.md."""
    with open(os.path.join(root, "docs/reference.md"),
              encoding="utf-8") as file:
        listed = set(re.findall(r"^(\w+\.h(?:pp)?) *\|", file.read(), re.M))
    for header in sorted(headers - listed):
        yield f"docs/reference.md: does not list {header}"
    for header in sorted(listed - headers):
        yield f"docs/reference.md: lists {header}, which does not exist"


def faults_of(header, comment, head, name, arguments, clauses):
    text = plain(comment or "")
    cited = [clause for line in LISTED.findall(text)
             for clause in CLAUSE.findall(line)]
    text = LISTED.sub("", text)
    if not text:
        yield "has no comment"
        return
    if not THREADS.search(text):
        yield "does not name its threads before the clauses"
    if not re.search(r"\bvoid\s+\w+\(", head) and "eturns " not in text:
        yield "does not document its return value"
    if STRUCTS.search(arguments) and not OWNING.search(text):
        yield "does not document the ownership of its structs"
    if not cited and header not in SILENT and name not in SILENT_ON:
        yield "names no clause"
    for unknown in sorted(set(cited) - clauses):
        yield f"names {unknown}, which docs/clauses.md does not have"


def main(root):
    with open(os.path.join(root, "docs/clauses.md"), encoding="utf-8") as file:
        clauses = set(re.findall(r"^\| ([A-Z]{1,2}-\d\d) ", file.read(), re.M))
    bad, count = [], 0
    for path in sorted(glob.glob(os.path.join(root, "include/uvarrow/*.h*"))):
        with open(path, encoding="utf-8") as file:
            bad += unbroken(os.path.basename(path), file.read())
    for path in sorted(glob.glob(os.path.join(root, "include/uvarrow/*.h"))):
        header = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^#.*(?:\\\n.*)*$", "", file.read(), flags=re.M)
        bad += misplaced(header, text)
        for comment, head, name, arguments in FUNCTION.findall(text):
            if not name.startswith("uva_"):
                continue
            count += 1
            bad += [f"{header}: {name} {fault}" for fault in faults_of(
                header, comment, head, name, arguments, clauses)]
    bad += unlisted(root, {os.path.basename(path) for path in glob.glob(
        os.path.join(root, "include/uvarrow/*.h*"))})
    if count < 70:
        bad.append(f"only {count} functions were found")
    print("\n".join(bad) or f"the comments of {count} functions are complete")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
