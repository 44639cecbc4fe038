#!/usr/bin/env python3
"""The public interface of the C headers, so that no change of it goes unnoticed: functions with their types, structs with
size and members, constants with their values. Types come from pycparser, layout
and values from a program that the C compiler builds.
Usage: interface.py check ROOT     compares the headers with tests/abi/*.txt
       interface.py record ROOT    writes the file of the headers' version

The promise (docs/abi.md): the headers of a version are equal to its file. They
may grow beyond the file of an earlier version, if a program that was built with
that one still runs: nothing goes or changes, members take bytes of `reserved`,
constants come last, and functions have the version in which they came. A version
before 1.0 promises nothing for earlier ones.
"""
import copy
import difflib
import glob
import os
import re
import subprocess
import sys
import tempfile

try:
    from pycparser import c_ast, c_generator, c_parser
except ImportError:
    print("pycparser is not installed: run scripts/bootstrap")
    sys.exit(77)

OURS = re.compile(r"uva_|UVA_")
# Functions of a TCK subject, and functions that only a macro calls
NOT_EXPORTED = re.compile(r"^uva_subject_|_adopted$")
# The headers of C, as far as ours need them.
LIBC = {
    "errno.h": "",
    "stdbool.h": "typedef _Bool bool;\n",
    "stddef.h": "typedef unsigned long size_t;\n#define NULL ((void *)0)\n",
    "stdint.h": "".join(f"typedef {base} int{bits}_t;\n"
                        f"typedef unsigned {base} uint{bits}_t;\n"
                        f"#define INT{bits}_MAX __INT{bits}_MAX__\n"
                        for base, bits in (("char", 8), ("short", 16),
                                           ("int", 32), ("long", 64)))
                .replace("typedef char", "typedef signed char"),
    "string.h": "void *memset(void *, int, size_t);\n"
                "void *memcpy(void *, const void *, size_t);\n"
                "unsigned long strlen(const char *);\n"}
MARK = "uvarrow_macro_"
NUMBER = re.compile(r"(?:\s|[-+*/|&~^<>()]|\b\d\w*\b|\bu?int\d+_t\b)+")
# They say which headers these are, and are in the first line of the file.
VERSION = ("UVA_VERSION_MAJOR", "UVA_VERSION_MINOR", "UVA_VERSION_PATCH",
           "UVA_VERSION_HEX")


class Interface:
    def __init__(self):
        self.version = ""
        self.functions = {}  # name: type
        self.structs = {}    # name: (size, alignment, {member: Member})
        self.enums = {}      # name: (size, {constant: value})
        self.types = {}      # typedef or opaque struct: type
        self.macros = {}     # name: value
        self.inline = set()  # functions that programs compile
        self.definitions = ""  # of stubs, in C


def written(node):
    """A type, without names of parameters"""
    class Nameless(c_ast.NodeVisitor):
        def visit_TypeDecl(self, node):
            node.declname = None
            self.generic_visit(node)
    node = copy.deepcopy(node)
    Nameless().visit(node)
    return " ".join(c_generator.CGenerator().visit(node).split())


def preprocessed(include, more="", *options):
    headers = sorted(os.path.basename(path) for path in
                     glob.glob(f"{include}/uvarrow/*.h"))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in LIBC.items():
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        return headers, subprocess.run(
            ["cc", "-E", "-P", "-nostdinc", "-I", folder, "-I", include,
             "-U__GNUC__", "-D__attribute__(x)=", "-DADBC_EXPORT=", *options,
             "-x", "c", "-"],
            input="".join(f'#include "uvarrow/{name}"\n' for name in headers) +
            more, check=True, stdout=subprocess.PIPE, text=True).stdout


def macros_of(include):
    """The macros of ours that are numbers"""
    _, defined = preprocessed(include, "", "-dM")
    names = re.findall(r"^#define (UVA_\w+) +\S", defined, re.M)
    _, text = preprocessed(include, "".join(f"\n{MARK}{name}\t{name}"
                                            for name in sorted(names)))
    values = re.findall(rf"^{MARK}(\w+) *(.*)$", text, re.M)
    return [name for name, value in values if NUMBER.fullmatch(value)]


def add_declaration(found, node):
    """Sorts one declaration of the headers into the interface"""
    kind = node.type
    name = node.name or getattr(kind, "name", "") or ""
    if isinstance(node, c_ast.Typedef):
        found.types[name] = written(kind)
    elif isinstance(kind, c_ast.FuncDecl):
        found.functions[name] = written(kind)
        declared = copy.copy(node)
        declared.storage = []
        found.definitions += (c_generator.CGenerator().visit(declared) +
                              " { __builtin_trap(); }\n")
    elif isinstance(kind, c_ast.Struct) and kind.decls:
        found.structs[name] = {member.name: written(member.type)
                               for member in kind.decls}
    elif isinstance(kind, c_ast.Struct):
        found.types.setdefault(name, "struct")
    elif isinstance(kind, c_ast.Enum):
        found.enums[name] = [item.name for item in kind.values.enumerators]


def parsed(include):
    """The names and types, without sizes and values"""
    found = Interface()
    found.headers, text = preprocessed(include)
    for node in c_parser.CParser().parse(text).ext:
        if isinstance(node, c_ast.FuncDef):
            node = node.decl
            found.inline.add(node.name)
        name = getattr(node, "name", "") or getattr(
            getattr(node, "type", None), "name", "") or ""
        if OURS.match(name):
            add_declaration(found, node)
    found.inline = {name for name in found.inline if OURS.match(name)}
    for name in found.structs:
        found.types.pop(name, None)
    return found


def measured(include, found, macros):
    """Numbers of the C compiler: of each expression of a list, in its order"""
    asked = [(name, f"(long long)({name})") for name in macros]
    for name, constants in found.enums.items():
        asked.append((name, f"(long long)sizeof(enum {name})"))
        asked += [(each, f"(long long){each}") for each in constants]
    for name, members in found.structs.items():
        of = f"struct {name}"
        asked += [((name, "size"), f"(long long)sizeof({of})"),
                  ((name, "align"), f"(long long)_Alignof({of})")]
        for each in members:
            asked += [((name, each, "at"), f"(long long)offsetof({of}, {each})"),
                      ((name, each, "size"),
                       f"(long long)sizeof((({of} *)0)->{each})")]
    text = "#include <stdio.h>\n" + "".join(
        f'#include "uvarrow/{name}"\n' for name in found.headers)
    text += "static const long long all[] = {\n" + "".join(
        f"{expression},\n" for _, expression in asked) + "};\n"
    text += ("int main(void) { for (size_t i = 0; i < sizeof(all) / 8; i++)"
             'printf("%lld\\n", all[i]); return 0; }\n')
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-w", "-I", include, "-x", "c", "-", "-o",
                        f"{folder}/print"], input=text, text=True, check=True)
        numbers = subprocess.run([f"{folder}/print"], check=True, text=True,
                                 capture_output=True).stdout.split()
    return dict(zip((key for key, _ in asked), map(int, numbers)))


def read(include):
    """The interface of the headers in a folder"""
    found = parsed(include)
    macros = macros_of(include)
    number = measured(include, found, macros)
    found.version = f"{number[VERSION[0]]}.{number[VERSION[1]]}"
    found.macros = {name: number[name] for name in macros
                    if name not in VERSION}
    found.enums = {name: (number[name], {each: number[each] for each in items})
                   for name, items in found.enums.items()}
    found.structs = {
        name: (number[name, "size"], number[name, "align"],
               {each: (number[name, each, "at"], number[name, each, "size"],
                       kind) for each, kind in members.items()})
        for name, members in found.structs.items()}
    return found


def text_of(found):
    """An interface as text, of which a change shows in a diff"""
    lines = [f"# The interface of uvarrow {found.version}. tests/abi/record "
             "writes this file."]
    lines += ["", "functions"] + [
        f"{name}: {kind}" for name, kind in sorted(found.functions.items())]
    lines += ["", "structs: size and alignment, then of each member: place, "
              "size, type"]
    for name, (size, align, members) in sorted(found.structs.items()):
        lines.append(f"{name}: {size} {align}")
        lines += [f"    {each}: {at} {size} {kind}"
                  for each, (at, size, kind) in members.items()]
    lines += ["", "enums: size, then the constants"]
    for name, (size, constants) in sorted(found.enums.items()):
        lines.append(f"{name}: {size}")
        lines += [f"    {each}: {value}" for each, value in constants.items()]
    lines += ["", "types"] + [
        f"{name}: {kind}" for name, kind in sorted(found.types.items())]
    lines += ["", "macros"] + [
        f"{name}: {value}" for name, value in sorted(found.macros.items())]
    return "\n".join(lines) + "\n"


def read_text(text):
    """The interface that a file of tests/abi/ has"""
    found = Interface()
    section = inner = None
    for line in text.splitlines():
        name, _, value = line.strip().partition(": ")
        words = value.split(" ", 2)
        if line.startswith("#"):
            found.version = re.search(r"uvarrow ([\d.]+)\. ", line).group(1)
        elif not line:
            section = None
        elif section is None:
            section = re.match(r"\w+", line).group()
        elif line.startswith(" "):
            inner[name] = (int(value) if section == "enums" else
                           (int(words[0]), int(words[1]), words[2]))
        elif section in ("structs", "enums"):
            inner = {}
            getattr(found, section)[name] = (*map(int, words), inner)
        else:
            getattr(found, section)[name] = (
                int(value) if section == "macros" else value)
    return found


def changed(what, old, new):
    """What has gone from a table of names, or changed there"""
    for name in sorted(set(old) - set(new)):
        yield f"{what} {name} is gone"
    for name in sorted(set(old) & set(new)):
        if old[name] != new[name]:
            yield f"{what} {name} was {old[name]}, is {new[name]}"


def struct_faults(name, old, new):
    """What breaks programs that know the old struct. A new member may lie in
    bytes that were `reserved`, which programs have set to 0; they have not set
    padding."""
    (size, align, members), (new_size, new_align, new_members) = old, new
    if (size, align) != (new_size, new_align):
        yield (f"struct {name} had size {size} and alignment {align}, has "
               f"{new_size} and {new_align}")
    at, bytes_kept, kind = members.get("reserved", (0, 0, ""))
    rest = {each: known for each, known in members.items() if each != "reserved"}
    yield from changed(f"member of struct {name}:", rest, new_members)
    for each, (begin, length, new_kind) in new_members.items():
        if each in rest:
            continue
        if begin < at or begin + length > at + bytes_kept:
            yield f"member of struct {name}: {each} is not in `reserved`"
        if each == "reserved" and new_kind.split("[")[0] != kind.split("[")[0]:
            yield f"struct {name} has another type of `reserved`"


def enum_faults(name, old, new):
    (size, constants), (new_size, new_constants) = old, new
    if size != new_size:
        yield f"enum {name} had size {size}, has {new_size}"
    yield from changed(f"enum {name}:", constants, new_constants)
    for each, value in new_constants.items():
        if each not in constants and value <= max(constants.values()):
            yield f"enum {name}: {each} does not come last"


def number_of(version):
    return tuple(map(int, version.split(".")))


def growth_faults(old, new, came):
    """What breaks programs that were built with an earlier version. `came` has
    the versions that the lists of symbols name."""
    for what in ("functions", "types", "macros"):
        yield from changed(what[:-1], getattr(old, what), getattr(new, what))
    for what, faults in (("structs", struct_faults), ("enums", enum_faults)):
        before, now = getattr(old, what), getattr(new, what)
        yield from changed(what[:-1], dict.fromkeys(before),
                           dict.fromkeys(now))
        for name in sorted(set(before) & set(now)):
            yield from faults(name, before[name], now[name])
    for name in sorted(set(new.functions) - set(old.functions)):
        if NOT_EXPORTED.search(name):
            continue
        if number_of(came.get(name, "0.0")) <= number_of(old.version):
            yield (f"function {name} is new, and has no version after "
                   f"{old.version} in runtime/symbols")


def difference(old, new):
    """What differs at all, as in the file; a line beside shows where"""
    yield from list(difflib.unified_diff(
        text_of(old).splitlines(), text_of(new).splitlines(), lineterm="",
        n=1))[2:]


def versions_of_symbols(root):
    """Of the functions that came after the first version of a SONAME: when"""
    came = {}
    for path in glob.glob(f"{root}/runtime/symbols/*.txt"):
        with open(path, encoding="utf-8") as file:
            came |= dict(line.split() for line in file if " " in line)
    return came


def recorded(root):
    for path in sorted(glob.glob(f"{root}/tests/abi/[0-9]*.txt")):
        with open(path, encoding="utf-8") as file:
            yield read_text(file.read())


def is_released(root, version):
    with open(f"{root}/CHANGELOG.md", encoding="utf-8") as file:
        title = re.search(rf"^## {re.escape(version)}\.0.*", file.read(), re.M)
    return title is not None and "not released" not in title.group()


def faults_with(root, new):
    """What breaks the promise to programs that were built"""
    came = versions_of_symbols(root)
    major = number_of(new.version)[0]
    for old in recorded(root):
        if old.version == new.version:
            yield from difference(old, new)
        elif major > 0 and major == number_of(old.version)[0]:
            yield from growth_faults(old, new, came)


def check(root):
    new = read(f"{root}/include")
    bad = list(faults_with(root, new))
    if not os.path.exists(f"{root}/tests/abi/{new.version}.txt"):
        bad.append(f"tests/abi/{new.version}.txt is not there")
    print("\n".join(bad) or f"the interface of {new.version} is the recorded one")
    if bad and not is_released(root, new.version):
        print("If that is meant: `tests/abi/record BUILD` records it "
              "(docs/abi.md)")
    return bool(bad)


def record(root):
    """Writes a file, unless that breaks a promise. A file of a version before
    1.0 promises nothing for the next one, and goes."""
    new = read(f"{root}/include")
    place = f"{root}/tests/abi/{new.version}.txt"
    released = is_released(root, new.version)
    if not released and os.path.exists(place):
        os.remove(place)
    bad = list(faults_with(root, new))
    if bad:
        print("\n".join(bad) + f"\n{new.version} cannot be recorded")
        return True
    for path in glob.glob(f"{root}/tests/abi/0.*.txt"):
        if path != place:
            os.remove(path)
    with open(place, "w", encoding="utf-8") as file:
        file.write(text_of(new))
    print(f"{place} has {len(new.functions)} functions")
    return False


if __name__ == "__main__":
    sys.exit({"check": check, "record": record}[sys.argv[1]](*sys.argv[2:]))
