#!/usr/bin/env python3
"""Fails when a comment or a page uses words that this project does not use for
threads, calls, objects and data, or cites a clause inside a sentence.
Usage: check_language.py [ROOT] [--count] | --self-test

A thread, a call or an object is "it"; data is passed, returned or reported. The
sentence names the mechanism: callback, return code, wake-up, reference. Looked
at are comments in C, C++, Python, shell and CMake, docstrings, and documents
outside of code. Identifiers and strings are not. Ids of clauses
stand together at the end of a comment, as in `Clauses: AP-08, AP-09.`

EXCEPTIONS lists places where a word is right. --count only prints how many
there are of each kind.
"""
import ast
import io
import os
import re
import sys
import tempfile
import tokenize

TOPS = (".ci", "bench", "cmake", "docs", "examples", "include", "python",
        "runtime", "scripts", "tck", "tests", "tools")
SKIPPED = ("tests/fuzz/corpus/", "tests/symbols/")
# file, a piece of its text that has the word, why the word is right there
EXCEPTIONS = (
)
MOST_EXCEPTIONS = 20

END = r"(?=\s*(?:[.,;:!?)]|\0|$))"
BANNED = {
    "person": r"\b(?:who|whom|whose|whoever|nobody|somebody|anybody|everybody"
              r"|he|him|his|himself)\b",
    "speech": r"\b(?:told|tells?|telling|says?|said|saying|hears?|heard"
              r"|asks? after|asked after|asking after)\b",
    "house": r"\b(?:dear|home|abroad|farewell|guests?|strangers?|lets? go"
             r"|letting go|welcome|heed|heeds|heeded|likewise)\b",
    "phrase": r"\b(?:comes to|is about it|of no account|what is there"
              r"|(?:there is )?one who|see[sn]? to it|in a hurry|sets? off"
              r"|on (?:its|their) way|at one go)\b",
    "no noun": r"\bthe same" + END + r"|\bthe same (?:goes|holds|is true)\b"
               r"|\bothers" + END + r"|\bthe others\b",
    "yet": r"\byet" + END,
}
ID = r"\b[A-Z]{1,2}-\d\d\b"
CLOSING = re.compile(r"\bClauses:(?:(?:\s|,|\band\b|\bto\b)*%s)+" % ID)
# Numbers that no document of the repository explains.
UNEXPLAINED = re.compile(r"(?<![\w.-])(?:[RP]\d{1,2}|\d{2}\.\d{1,2})"
                         r"(?![\w.-]*\w)(?!\s*(?:%|ns|ms|us|s|x|MiB)\b)")
CITING = ("include/", "runtime/", "tck/")
WORDS = {kind: re.compile(pattern.replace(" ", r"\s+"), re.I)
         for kind, pattern in BANNED.items()}


# ---- what is prose ----------------------------------------------------------

class Mask:
    """A text of which only some parts stay; other characters become zero"""

    def __init__(self, text):
        self.text = text
        self.kept = ["\n" if c == "\n" else " " if c.isspace() else "\0"
                     for c in text]

    def keep(self, begin, end):
        self.kept[begin:end] = self.text[begin:end]

    def prose(self):
        return "".join(self.kept)


C_PARTS = re.compile(r'/\*(.*?)\*/|//([^\n]*)|"(?:\\.|[^"\\\n])*"'
                     r"|'(?:\\.|[^'\\\n])*'", re.S)
HASH = re.compile(r"(?:^|(?<=\s))#+(?!\!)([^\n]*)", re.M)
QUOTED = re.compile(r'"(?:\\.|[^"\\])*"' r"|'[^']*'" r"|(?:^|(?<=\s))#[^\n]*",
                    re.M)


def of_c(text):
    mask = Mask(text)
    for part in C_PARTS.finditer(text):
        for group in (1, 2):
            if part.group(group) is not None:
                mask.keep(*part.span(group))
    # the stars at the beginnings of lines
    return re.sub(r"(?m)^(\s*)\*(?=\s|$)", r"\1 ", mask.prose())


def of_hash(text):
    """Comments of shell and CMake, where a quote may hold a #"""
    mask = Mask(text)
    for part in QUOTED.finditer(text):
        if part.group(0).startswith("#"):
            mask.keep(part.start() + 1, part.end())
    return mask.prose()


def of_python(text):
    mask = Mask(text)
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        tree = ast.parse(text)
    except (SyntaxError, tokenize.TokenError):
        return of_hash(text)
    documented = {(node.body[0].lineno, node.body[0].col_offset)
                  for node in ast.walk(tree)
                  if isinstance(node, (ast.Module, ast.FunctionDef,
                                       ast.AsyncFunctionDef, ast.ClassDef))
                  and ast.get_docstring(node) is not None}
    for token in tokens:
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        if token.type == tokenize.COMMENT:
            mask.keep(begin + 1, end)
        elif token.type == tokenize.STRING and token.start in documented:
            mask.keep(begin + 3, end - 3)
    return mask.prose()


def of_page(text):
    mask = Mask(text)
    mask.keep(0, len(text))
    for code in re.finditer(r"```.*?```|^    [^\n]*", text, re.S | re.M):
        for i in range(*code.span()):
            mask.kept[i] = "\n" if text[i] == "\n" else "\0"
    return mask.prose()


def reader_of(path, text):
    """The function that finds the prose of a file; None if there is none"""
    name, suffix = os.path.basename(path), os.path.splitext(path)[1]
    if suffix in (".c", ".h", ".cc", ".hpp"):
        return of_c
    if suffix == ".md" or name == "coverage_reasons.txt":
        return of_page
    if suffix == ".py" or re.match(r"#!.*python", text):
        return of_python
    if (suffix in (".sh", ".cmake") or name == "CMakeLists.txt"
            or text.startswith("#!")):
        return of_hash
    return None


def files(root):
    names = [name for name in os.listdir(root)
             if name.endswith(".md") or name == "CMakeLists.txt"]
    for top in TOPS:
        for folder, inner, found in os.walk(os.path.join(root, top)):
            inner[:] = [i for i in inner if i != "__pycache__"]
            names += [os.path.relpath(os.path.join(folder, name), root)
                      for name in found]
    for path in sorted(names):
        if not path.startswith(SKIPPED):
            with open(os.path.join(root, path), encoding="utf-8",
                      errors="replace") as file:
                text = file.read()
            if reader_of(path, text):
                yield path, reader_of(path, text)(text)


# ---- faults -----------------------------------------------------------------

def faults_of(path, prose):
    """(begin, kind, word) of each"""
    # inline code: names, and what is typed
    prose = re.sub(r"`[^`\n]*`", lambda c: "\1" * len(c.group(0)), prose)
    for kind, pattern in WORDS.items():
        for found in pattern.finditer(prose):
            yield found.start(), kind, " ".join(found.group(0).split())
    if path.startswith(CITING) and not path.endswith(".md"):
        rest = CLOSING.sub(lambda c: " " * len(c.group(0)), prose)
        for found in re.finditer(ID, rest):
            yield found.start(), "clause in a sentence", found.group(0)
        for found in UNEXPLAINED.finditer(prose):
            yield found.start(), "unexplained number", found.group(0)


def is_excepted(row, path, prose, begin):
    pattern = re.compile(r"[\s\0*]+".join(map(re.escape, row[1].split())))
    return path == row[0] and any(
        piece.start() <= begin < piece.end()
        for piece in pattern.finditer(prose))


def faults(root, exceptions):
    """(path, line, kind, word), and sentences about the exceptions"""
    found, stale = [], set(exceptions)
    for path, prose in files(root):
        for begin, kind, word in sorted(faults_of(path, prose)):
            rows = [row for row in exceptions
                    if is_excepted(row, path, prose, begin)]
            stale.difference_update(rows)
            if not rows:
                found.append((path, prose.count("\n", 0, begin) + 1, kind,
                              word))
    about = [f"{row[0]}: an exception is not needed: {row[1]}"
             for row in exceptions if row in stale]
    if len(exceptions) > MOST_EXCEPTIONS:
        about.append(f"{len(exceptions)} exceptions, at most "
                     f"{MOST_EXCEPTIONS} are allowed")
    return found, about


def main(root, *options):
    found, about = faults(root, EXCEPTIONS)
    if "--count" in options:
        for kind in (*WORDS, "clause in a sentence", "unexplained number"):
            print(f"{sum(fault[2] == kind for fault in found):6} {kind}")
    else:
        for path, line, kind, word in found:
            print(f"{path}:{line}: {kind}: {word}")
    print("\n".join(about) or (f"{len(found)} words to replace" if found else
                               "comments and pages keep to the words of the "
                               "project"))
    return bool(found or about)


# ---- self-test --------------------------------------------------------------

FIXTURE = {
    "runtime/a.c": '/* The thread who\n * waits. */\nint who; /* it waits */\n'
                   'const char *s = "nobody // told";\n'
                   '// Not done yet\n'
                   '/* AP-08 rules this. Clauses: AP-08,\n * AP-09. */\n'
                   '/* See R05 and 12.8, in 10.5 ms. */\n',
    "tests/a.py": '"""Tells of it."""\nx = "he said" # his\n"""he"""\n',
    "tests/a.sh": '#!/bin/sh\necho "# he" # The same.\nx=${y#he}\n',
    "tests/CMakeLists.txt": '# They come\n# home\nset(x "he")\n',
    "docs/a.md": "`he` is code.\n\n    he\n\n```\nhe\n```\nIt sees to\nit.\n",
    "docs/b.md": "He who reads.\n",
}
EXPECTED = [
    ("docs/a.md", 8, "phrase", "sees to it"),
    ("docs/b.md", 1, "person", "He"),
    ("runtime/a.c", 1, "person", "who"),
    ("runtime/a.c", 5, "yet", "yet"),
    ("runtime/a.c", 6, "clause in a sentence", "AP-08"),
    ("runtime/a.c", 8, "unexplained number", "R05"),
    ("runtime/a.c", 8, "unexplained number", "12.8"),
    ("tests/CMakeLists.txt", 2, "house", "home"),
    ("tests/a.py", 1, "speech", "Tells"),
    ("tests/a.py", 2, "person", "his"),
    ("tests/a.sh", 2, "no noun", "The same"),
]


def self_test():
    with tempfile.TemporaryDirectory() as root:
        for path, text in FIXTURE.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        right = ("docs/b.md", "who reads", "persons read")
        stale = ("docs/b.md", "he writes", "nothing does")
        found, about = faults(root, (right, stale))
        if found != EXPECTED:
            return "\n".join(["found:", *map(str, found)])
        if len(about) != 1 or "he writes" not in about[0]:
            return f"stale exceptions: {about}"
        if len(faults(root, (right,) * (MOST_EXCEPTIONS + 1))[1]) != 1:
            return "any number of exceptions is allowed"
    print("each kind of word is found, in comments and pages only")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    sys.exit(main(*(sys.argv[1:] or ["."])))
