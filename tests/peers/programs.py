"""The programs of docs/languages.md: each is as the page has it, and runs a query
to its end, to an error, and beyond its time limit."""

import os
import pathlib
import subprocess

import ours

ROOT = ours.ROOT
PAGE = ROOT / "docs/languages.md"
MANY = ("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
        "WHERE n < 200000) SELECT n FROM c")
ENDLESS = ("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
           "WHERE n > 0) SELECT n FROM c")
LINES = 60
PACKAGES = {  # of pkg-config: the folder in the build, what it needs
    "uvarrow": ("runtime", ""), "uvarrow-io": ("runtime/io", "uvarrow"),
    "uvarrow-adbc": ("runtime/adbc", "uvarrow")}


def environment(folder):
    """That of a program that finds uvarrow as if it were installed."""
    packages = folder / "pkgconfig"
    packages.mkdir(parents=True, exist_ok=True)
    folders = []
    for name, (part, needed) in PACKAGES.items():
        folders.append(str(ours.BUILD / part))
        (packages / f"{name}.pc").write_text(
            f"Name: {name}\nDescription: of a build\nVersion: 0\n"
            f"Requires: {needed}\nCflags: -I{ROOT / 'include'}\n"
            f"Libs: -L{folders[-1]} -l{name}\n", encoding="utf-8")
    return {"PKG_CONFIG_PATH": str(packages),
            "LD_LIBRARY_PATH": ":".join(folders),
            "VIRTUAL_ENV": str(ROOT / ".venv")}


def output(command, environment_, *words):
    done = subprocess.run(
        [*map(str, command), *words], check=False, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, **environment_})
    return done.stdout


def faults(source, command, environment_):
    """What is wrong with a program."""
    text = pathlib.Path(source).read_text(encoding="utf-8")
    name = os.path.relpath(source, ROOT)
    if text not in PAGE.read_text(encoding="utf-8"):
        yield f"docs/languages.md does not have {name} as it is"
    if text.count("\n") > LINES:
        yield f"{name} has more than {LINES} lines"
    for sql, expected in ((MANY, "200000 rows"), ("SELECT x", "no such column"),
                          (ENDLESS, "ECANCELED")):
        said = output(command, environment_, "sqlite::memory:", sql)
        if not any(word in said for word in EXPECTED.get(expected, (expected,))):
            yield f"{name}, {sql[:20]}: {said[-500:]}"


# How each program tells that its limit was reached
EXPECTED = {"ECANCELED": ("too late", "ancel")}
