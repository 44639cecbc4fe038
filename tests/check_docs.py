#!/usr/bin/env python3
"""Fails when the C in the documents does not compile, a page on an idea lacks
its diagram or its code, a link between the documents leads nowhere, or a page on
the code names a function or member that the library does not have.
Usage: check_docs.py [ROOT] | --self-test

A block ```c is compiled by itself, without warnings: as functions if it defines
any, otherwise as the body of a function with the variables `loop`, `rt`, `s`,
`error` and `code`. So is a block ```cpp that uses
`uva::`, as the body of a coroutine. Other declarations that it needs stand in a comment above
it, which readers do not see: <!-- with: declarations -->.

On the pages on the code each `name()` and, in the diagrams, each name with an
underscore is one of runtime/ or include/; in the file, if one stands before a
`name()`. So are names with uva__ on all other pages but the record of the bench.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

IDEAS = ("ownership", "threads", "back-pressure", "cancellation", "hosting",
         "reading-the-document", "windows-and-lanes", "devices")
ON_CODE = ("docs/architecture.md", "docs/cancellation.md")
RECORDS = ("docs/benchmarks.md",)
NAME = re.compile(r"\b[A-Za-z_]\w*(?=\(\))")
PRIVATE = re.compile(r"\buva__\w+")
IN_DIAGRAM = re.compile(r"\b[a-z]\w*_\w+\b(?!\.[ch]\b)")
IN_FILE = re.compile(r"\b(\w+\.[ch])`?\s+`?(\w+)\(\)")
PLACE = re.compile(r"^\| `([\w/]+\.[ch])`: (.*?) \|", re.M)
PART = re.compile(r"(\w+)`|\b([A-Z_]{4,})\b")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
BLOCK = re.compile(r"(?:<!-- with: (.*?) -->\n)?^```(c|cpp)\n(.*?)^```$",
                   re.M | re.S)
PLAIN = re.compile(r"^```\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
C = ("-std=gnu11",)
COMPILERS = {False: ("cc",), True: ("g++", "clang++")}
CPP = ("-x", "c++", "-std=gnu++20", "-Wpedantic", "-Wno-unknown-warning-option",
       "-Wno-subobject-linkage") # the file is not the one of #line
FLAGS = ("-fsyntax-only", "-Iexamples", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused", "-Wno-unused-parameter", "-Wno-uninitialized")
BEGIN = """#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>
#include <uvarrow/uvarrow.h>
"""
CPP_BEGIN = """#include <coroutine>
#include <uv.h>
#include <uvarrow/uvarrow.hpp>
struct job {{
    struct promise_type {{
        job get_return_object();
        std::suspend_never initial_suspend();
        std::suspend_never final_suspend() noexcept;
        void return_void();
        void unhandled_exception();
    }};
}};
{given}
static job snippet(uv_loop_t *loop, uva::runtime &given_rt, uva::stream &given_s,
                   uva_error error)
{{
int code = 0;
{names}
#line {line} "{path}"
{text}
co_return;
}}
"""
BODY = """int snippet(uv_loop_t *loop, struct uva_runtime *rt,
            struct uva_stream *s, struct uva_error error);
int snippet(uv_loop_t *loop, struct uva_runtime *rt, struct uva_stream *s,
            struct uva_error error)
{{
int code = 0;
#line {line} "{path}"
{text}
return code;
}}
"""


def program(path, line, given, text):
    """The block as something a compiler takes"""
    if re.search(r"^\{$", text, re.M):
        return f'{BEGIN}{given}\n#line {line} "{path}"\n{text}'
    # a stream that the block makes hides the given one
    text = re.sub(r"^struct uva_stream \*s = ", "s = ", text, flags=re.M)
    return f"{BEGIN}{given}\n" + BODY.format(line=line, path=path, text=text)


def cpp_program(path, line, given, text):
    names = "".join(f"auto &{name} = given_{name};" for name in ("rt", "s")
                    if not re.search(rf"^uva::\w+ {name}\b", text, re.M))
    return CPP_BEGIN.format(path=path, line=line, given=given, text=text,
                            names=names)


def faults_of_code(root, path, text, source):
    flags = subprocess.run(["pkg-config", "--cflags", "libuv"], check=True,
                           capture_output=True, text=True).stdout.split()
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(3)) + 1
        in_cpp = block.group(2) == "cpp"
        if in_cpp and "uva::" not in block.group(3):
            continue
        write = cpp_program if in_cpp else program
        with open(source, "w", encoding="utf-8") as file:
            file.write(write(path, line, block.group(1) or "",
                             block.group(3)))
        for compiler in COMPILERS[in_cpp]:
            result = subprocess.run(
                [compiler, *(CPP if in_cpp else C), *FLAGS, *flags, "-I",
                 os.path.join(root, "include"), source],
                capture_output=True, text=True)
            if result.returncode != 0:
                yield (f"{path}:{line}: {compiler} does not compile it\n"
                       f"{result.stderr}")


def words_of_library(root):
    """The files of each word of the library outside comments, by their paths"""
    files = {}
    for top in ("runtime", "include"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith((".c", ".h", ".hpp")):
                    with open(path, encoding="utf-8") as file:
                        text = COMMENT.sub("", file.read())
                    for word in re.findall(r"\w+", text):
                        files.setdefault(word, set()).add(path)
    return files


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def faults_of_places(text, files):
    """In the table of members: `folder/file.h`: `member`, CONSTANT"""
    for place in PLACE.finditer(text):
        for name, constant in PART.findall(place.group(2)):
            part = name or constant
            words = [word for word in files if word == part or
                     constant and word.endswith("_" + part)]
            if not any(path.endswith("/" + place.group(1))
                       for word in words for path in files[word]):
                yield place.start(), f"{place.group(1)} has no {part}"


def faults_of_names(page, text, files):
    """Names of the library on a page that do not exist, with their lines"""
    found = []
    if page not in RECORDS:
        found += [(name.start(), f"no name {name.group(0)}")
                  for name in PRIVATE.finditer(text)
                  if name.group(0) not in files]
    if page in ON_CODE:
        found += [(name.start(), f"no function {name.group(0)}()")
                  for name in NAME.finditer(text) if name.group(0) not in files]
        for plain in PLAIN.finditer(BLOCK.sub(blank, text)):
            found += [(plain.start(1) + name.start(), f"no name {name.group(0)}")
                      for name in IN_DIAGRAM.finditer(plain.group(1))
                      if name.group(0) not in files]
        found += [(name.start(), f"{name.group(1)} has no {name.group(2)}()")
                  for name in IN_FILE.finditer(text)
                  if not any(path.endswith("/" + name.group(1))
                             for path in files.get(name.group(2), ()))]
        found += faults_of_places(text, files)
    return sorted({(text.count("\n", 0, at) + 1, fault) for at, fault in found})


def main(root):
    pages = [os.path.join(root, "README.md"),
             os.path.join(root, "examples", "README.md"),
             *sorted(glob.glob(os.path.join(root, "docs", "*.md")))]
    bad, blocks = [], 0
    files = words_of_library(root)
    with tempfile.TemporaryDirectory() as folder:
        for path in pages:
            name = os.path.relpath(path, root)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            blocks += len(BLOCK.findall(text))
            bad += [f"{name}:{line}: {fault}"
                    for line, fault in faults_of_names(name, text, files)]
            bad += faults_of_code(root, name, text,
                                  os.path.join(folder, "block.c"))
            bad += [f"{name}: no file {link}" for link in LINK.findall(BLOCK.sub("", text))
                    if not os.path.exists(
                        os.path.join(os.path.dirname(path), link))]
    for idea in IDEAS:
        path = os.path.join(root, "docs", idea + ".md")
        text = open(path, encoding="utf-8").read() if os.path.exists(
            path) else ""
        if not BLOCK.search(text):
            bad.append(f"docs/{idea}.md: no code")
        if not any(re.search(r"--+>|<--+|\|", plain)
                   for plain in PLAIN.findall(text)):
            bad.append(f"docs/{idea}.md: no diagram")
    print("\n".join(bad) or f"{blocks} blocks of C in the documents compile")
    return bool(bad)


def self_test():
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "runtime", "a"))
        for name, text in (
                ("hop.c", "void uva__hop_run(void); /* by hop_wait */ hop_end();"),
                ("hop.h", "bool latch; enum { HOP_QUIT };")):
            with open(os.path.join(root, "runtime", "a", name), "w",
                      encoding="utf-8") as file:
                file.write(text)
        files = words_of_library(root)
    text = """`uva__hop_run()` and `uva__hop_walk()`, `hop_end()`, `hop_stop()`

```
hop.c  hop_end()      by hop_wait
wait.c uva__hop_run()
```

| `a/hop.h`: `locked.latch`, QUIT | loop |
| `a/hop.h`: `locked.lock`, ENDED | loop |
"""
    wrong = [(1, "no function hop_stop()"), (1, "no function uva__hop_walk()"),
             (1, "no name uva__hop_walk"), (4, "no name hop_wait"),
             (5, "wait.c has no uva__hop_run()"), (9, "a/hop.h has no lock")]
    found = [faults_of_names(page, text, files)
             for page in (ON_CODE[0], "docs/decisions.md", RECORDS[0])]
    if found != [wrong[:5] + [(9, "a/hop.h has no ENDED"), wrong[5]],
                 wrong[2:3], []]:
        return f"found {found}"
    print("each kind of wrong name is found")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
