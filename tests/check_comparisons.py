#!/usr/bin/env python3
"""Fails if a file compares something with itself, so that the comparison
cannot fail: ck_assert_int_eq(a, a), strcmp(a, a), a == a; or expects the
outcome's own values of it: ck_ended(end, got->outcome.code, text). Usage:
check_comparisons.py [ROOT | --self-test]

A comparison of a call with itself counts, too: a test that shows that two calls
give equal results assigns these first. Two arguments that are equal
but mean something stand in MEANT, with the reason.
"""
import os
import re
import sys

FOLDERS = ("runtime", "tck", "tools", "tests", "examples", "bench", "include")
CALLS = re.compile(
    r"\b(ck_assert_\w+|assert_\w+|strn?cmp|strcasecmp|memcmp|EXPECT_\w+|"
    r"ASSERT_\w+|assert\w*Equal\w*)\(")
# Functions of the tests that compare an outcome with their arguments.
ENDED = re.compile(r"\b(\w*_ended)\(")
BARE = re.compile(r"(?<![\w.>)\]])([a-z_][\w.]*(?:->\w+)*(?:\[\w+\])*) "
                  r"(?:==|!=|<=|>=|<|>) \1(?![\w.\[(]|->)")
# (file, text): why it is meant
MEANT = {}


def arguments(text, begin):
    """Returns the arguments of the call that opens just before `begin`."""
    depth, parts, at, quote = 1, [], begin, None
    for i in range(begin, len(text)):
        c = text[i]
        if quote:
            if c == quote and text[i - 1] != "\\":
                quote = None
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if not quote and (depth == 0 or (c == "," and depth == 1)):
            parts.append("".join(text[at:i].split()))
            at = i + 1
        if depth == 0:
            return parts
    return []


def stripped(text):
    """Returns the text without comments; strings keep their place."""
    def blank(found):
        word = found[0]
        return word if word[0] in "\"'" else re.sub(r"[^\n]", " ", word)
    return re.sub(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|"
                  r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)


def comparisons(text):
    """Yields (line, text) of each comparison of something with itself."""
    text = stripped(text)
    for found in CALLS.finditer(text):
        parts = arguments(text, found.end())
        if len(parts) >= 2 and parts[0] and parts[0] == parts[1]:
            line = text.count("\n", 0, found.start()) + 1
            yield line, f"{found[1]}({parts[0]}, {parts[1]})"
    for found in ENDED.finditer(text):
        for part in arguments(text, found.end()):
            if re.search(r"\boutcome(\.|->)\w", part):
                yield (text.count("\n", 0, found.start()) + 1,
                       f"{found[1]}(... {part} ...)")
    for found in BARE.finditer(text):
        yield text.count("\n", 0, found.start()) + 1, found[0]


def check(root):
    bad = []
    for folder in FOLDERS:
        for path, folders, names in os.walk(os.path.join(root, folder)):
            folders[:] = [f for f in folders if not f.startswith(".")]
            for name in names:
                if not name.endswith((".c", ".h", ".cc", ".hpp", ".cpp")):
                    continue
                file = os.path.join(path, name)
                with open(file, encoding="utf-8") as opened:
                    for line, what in comparisons(opened.read()):
                        short = os.path.relpath(file, root)
                        if (short, what) not in MEANT:
                            bad.append(f"{short}:{line}: {what}")
    print("\n".join(bad) or "no comparison of anything with itself")
    return bool(bad)


def self_test():
    found = ["ck_assert_int_eq(out->code, out->code);",
             "ck_assert_int_eq(f(a, b),\n    f(a, b));",
             "if (strcmp(a->name, a->name) == 0)", "return x == x;",
             "while (p->next != p->next)", "ck_assert_str_eq(\"a\", \"a\");",
             "ck_assert(a[i] == a[i]);",
             "ck_ended(FAILED, got->outcome.error.code, \"text\");"]
    clean = ["ck_assert_int_eq(out->code, in->code);", "x == xy", "x == x->y",
             "ck_assert_int_eq(f(a, b), f(b, a));", "/* x == x */", "a->x == x",
             "a[i] == a[j]", "ck_assert_str_eq(\"a, a\", text);", "a.x == x",
             "a == a[1]", "x == x(1)", "\"x == x\"", "f(x) == x",
             "ck_ended(FAILED, bent[_i].code, \"schema\");"]
    wrong = [t for t in found if not list(comparisons(t))]
    wrong += [t for t in clean if list(comparisons(t.replace('"x == x"', '""')))]
    print("\n".join(wrong) or "the check finds what it must")
    return bool(wrong)


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    sys.exit(check(sys.argv[1] if len(sys.argv) > 1 else "."))
