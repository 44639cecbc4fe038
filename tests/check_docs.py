#!/usr/bin/env python3
"""Fails when the C in the documents does not compile, a page on an idea lacks
its diagram or its code, or a link between the documents leads nowhere.
Usage: check_docs.py [ROOT]

A block ```c is compiled by itself, without warnings: as functions if it defines
any, otherwise as the body of a function with the variables `loop`, `rt`, `s`,
`error` and `code`. So is a block ```cpp that uses
`uva::`, as the body of a coroutine. Other declarations that it needs stand in a comment above
it, which readers do not see: <!-- with: declarations -->.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

IDEAS = ("ownership", "threads", "back-pressure", "cancellation", "hosting",
         "reading-the-document", "windows-and-lanes", "devices")
BLOCK = re.compile(r"(?:<!-- with: (.*?) -->\n)?^```(c|cpp)\n(.*?)^```$",
                   re.M | re.S)
PLAIN = re.compile(r"^```\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
C = ("-std=gnu11",)
COMPILERS = {False: ("cc",), True: ("g++", "clang++")}
CPP = ("-x", "c++", "-std=gnu++20", "-Wpedantic", "-Wno-unknown-warning-option",
       "-Wno-subobject-linkage") # the file is not the one of #line
FLAGS = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror",
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


def main(root):
    pages = [os.path.join(root, "README.md"),
             os.path.join(root, "examples", "README.md"),
             *sorted(glob.glob(os.path.join(root, "docs", "*.md")))]
    bad, blocks = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for path in pages:
            name = os.path.relpath(path, root)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            blocks += len(BLOCK.findall(text))
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
