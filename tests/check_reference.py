#!/usr/bin/env python3
"""Fails when the comment of a public function lacks what it must say:
what it does, what it returns, the threads that may call it, who owns the Arrow
structs it is given, and the clauses it rests on. Usage: check_reference.py [ROOT]

docs/reference runs this, and then Doxygen, for which any warning is an error.
"""
import glob
import os
import re
import sys

FUNCTION = re.compile(
    r"(?:/\*\*((?:[^*]|\*(?!/))*)\*/\s*)?"
    r"((?:UVA_MUST_CHECK\s+)?(?:UVA_API|UVA_SUBJECT_API|static inline)\s"
    r"[^;{]*?(\w+)\(([^;{]*)\))")
THREADS = re.compile(r"Thread: (any|loop|builder)\b[^.]*\.$")
OWNING = re.compile(r"\b([Tt]akes?|[Gg]ives?|[Bb]orrow(?:s|ed)?|own(?:s|ed)?|"
                    r"[Cc]op(?:y|ies|ied)|[Rr]eleases?d?|[Ss]pends|[Mm]oves|"
                    r"caller's|caller holds|read)\b")
CLAUSE = re.compile(r"\b([A-Z]{1,2}-\d\d)\b")
STRUCTS = re.compile(r"(?<!const )struct (Arrow\w+) \*")

# Headers of which the Arrow document says nothing, and functions likewise.
SILENT = ("base.h", "runtime.h", "tck.h")
SILENT_ON = ("uva_bytes_of", "uva_stream_acquire", "uva_stream_release",
             "uva_stream_get_info", "uva_stream_set_name")


def faults_of(header, comment, head, name, arguments, clauses):
    text = " ".join(re.sub(r"\n \*", " ", comment or "").split())
    cited = CLAUSE.findall(text)
    if not text:
        yield "has no comment"
        return
    if not THREADS.search(text):
        yield "does not end with its threads"
    if not re.search(r"\bvoid\s+\w+\(", head) and "eturns " not in text:
        yield "does not say what it returns"
    if STRUCTS.search(arguments) and not OWNING.search(text):
        yield "does not say who owns the structs it is given"
    if not cited and header not in SILENT and name not in SILENT_ON:
        yield "names no clause"
    for unknown in sorted(set(cited) - clauses):
        yield f"names {unknown}, which docs/clauses.md does not have"


def main(root):
    with open(os.path.join(root, "docs/clauses.md"), encoding="utf-8") as file:
        clauses = set(re.findall(r"^\| ([A-Z]{1,2}-\d\d) ", file.read(), re.M))
    bad, count = [], 0
    for path in sorted(glob.glob(os.path.join(root, "include/uvarrow/*.h"))):
        header = os.path.basename(path)
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^#.*(?:\\\n.*)*$", "", file.read(), flags=re.M)
        for comment, head, name, arguments in FUNCTION.findall(text):
            if not name.startswith("uva_"):
                continue
            count += 1
            bad += [f"{header}: {name} {fault}" for fault in faults_of(
                header, comment, head, name, arguments, clauses)]
    if count < 70:
        bad.append(f"only {count} functions were found")
    print("\n".join(bad) or f"{count} functions say what they must")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
