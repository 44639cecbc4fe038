"""The peers of each language: how they are built, what is run with them, and the
report in docs/conformance.md."""

import importlib
import os
import pathlib
import re
import shutil
import subprocess

import exchange
import programs
import report
from folder import Folder
from native import Native

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/peers"
SKIPPED = 77


class Absent(Exception):
    """What a language needs is not on this machine"""


def require(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Absent(f"there is no {program}")


class Broken(Exception):
    """A program of ours does not compile, or its tests fail"""


def run(words, folder, error=Broken, **environment):
    done = subprocess.run(list(map(str, words)), cwd=folder, check=False,
                          stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        raise error(f"{' '.join(map(str, words[:3]))}: {done.stdout[-2000:]}")
    return done.stdout


def fetch(words, folder, **environment):
    """Gets packages, which may not be possible."""
    return run(words, folder, Absent, **environment)


def pinned(file, pattern):
    """The version of a package, in the file that pins it."""
    return re.search(pattern, (HERE / file).read_text(encoding="utf-8"))[1]


# ---- languages --------------------------------------------------------------

def go():
    require("go")
    library = BUILD / "go/peer.so"
    fetch(["go", "mod", "download"], HERE / "go")
    run(["go", "build", "-mod=readonly", "-buildmode=c-shared", "-o", library,
         "."], HERE / "go", CGO_ENABLED="1", GOFLAGS="-buildvcs=false")
    yield Native("arrow-go", pinned("go/go.mod", r"arrow-go/v18 v([\d.]+)"),
                 library)


def rust():
    require("cargo")
    folder = BUILD / "rust"
    copy(HERE / "rust", folder)
    lock_of_cargo(folder)
    fetch(["cargo", "fetch", "--locked"], folder)
    run(["cargo", "build", "--locked"], folder)
    yield Native("arrow-rs", pinned("rust/Cargo.toml",
                                    r'arrow-ipc = .*"=([\d.]+)"'),
                 folder / "target/debug/libuvarrow_peer.so")


def java():
    require("mvn", "java")
    folder = BUILD / "java"
    copy(HERE / "java", folder)
    path = folder / "classpath"
    if not path.exists():
        fetch(["mvn", "-q", "-B", "dependency:build-classpath",
             f"-Dmdep.outputFile={path}"], folder)
    run(["javac", "-cp", path.read_text(encoding="utf-8"), "-d", folder,
         folder / "Peer.java"], folder)
    yield Folder("arrow-java", pinned("java/pom.xml", r"<arrow>([\d.]+)<"), [
        "java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp",
        f"{folder}:{path.read_text(encoding='utf-8')}", "Peer"],
                 writes="echo", passes=True)


def js():
    require("node", "npm")
    folder = BUILD / "js"
    copy(HERE / "js", folder)
    if not (folder / "node_modules").exists():
        fetch(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            folder)
    yield Folder("apache-arrow", pinned_npm("apache-arrow"),
                 ["node", folder / "apache_arrow.mjs"], ["none"], reads="echo")
    yield Folder("flechette", pinned_npm("@uwdata/flechette"),
                 ["node", folder / "flechette.mjs"], ["none"], reads="echo",
                 writes="echo")


def pinned_npm(package):
    return pinned("js/package.json", rf'"{package}": "([\d.]+)"')



def packages(*modules):
    """Peers that are packages of .venv."""
    for module, name in modules:
        try:
            made = importlib.import_module(f"python.{module}")
        except ImportError as error:
            raise Absent(f"the package of Python: {error}") from error
        yield getattr(made, name)()


def cpp():
    return packages(("arrow_cpp", "ArrowCpp"))


def python():
    return packages(("nano", "Nanoarrow"), ("polars_peer", "Polars"),
                    ("duck", "DuckDB"))


# ---- the programs of docs/languages.md ---------------------------------------

def go_program(found):
    program = BUILD / "go/query"
    run(["go", "build", "-mod=readonly", "-o", program, "."],
        ROOT / "examples/go", CGO_ENABLED="1", GOFLAGS="-buildvcs=false",
        **found)
    yield from programs.faults(ROOT / "examples/go/query.go", [program], found)


def rust_program(found):
    folder = BUILD / "tokio"
    copy(ROOT / "examples/rust", folder)
    shutil.copy(HERE / "rust/tokio.pins", folder / "Cargo.pins")
    lock_of_cargo(folder)
    target = {"CARGO_TARGET_DIR": str(BUILD / "rust/target"), **found}
    run(["cargo", "build", "--locked"], folder, **target)
    said = run(["cargo", "test", "--locked", "-q"], folder, **target)
    if "6 passed" not in said:
        yield f"examples/rust: {said}"
    yield from programs.faults(ROOT / "examples/rust/src/main.rs",
                               [BUILD / "rust/target/debug/uvarrow-tokio"],
                               found)


def java_program(found):
    path = (BUILD / "java/classpath").read_text(encoding="utf-8")
    run(["javac", "-cp", path, "-d", BUILD / "java",
         ROOT / "examples/java/Query.java"], BUILD / "java")
    yield from programs.faults(ROOT / "examples/java/Query.java", [
        "java", "--add-opens=java.base/java.nio=ALL-UNNAMED",
        f"-Djna.library.path={found['LD_LIBRARY_PATH']}", "-cp",
        f"{BUILD / 'java'}:{path}", "Query"], found)


PROGRAMS = {"go": go_program, "rust": rust_program, "java": java_program}
LANGUAGES = {"go": go, "rust": rust, "java": java, "js": js, "cpp": cpp,
             "python": python}


def copy(source, folder):
    """The files of a language, where it may build."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, folder, dirs_exist_ok=True)


def lock_of_cargo(folder):
    """Makes Cargo.lock of the pins, which have no registry: that is the one of
    this machine."""
    lock = folder / "Cargo.lock"
    if lock.exists():
        return
    fetch(["cargo", "generate-lockfile"], folder)
    source = re.search(r'^source = "registry.*"$', lock.read_text(
        encoding="utf-8"), re.MULTILINE)[0]
    pins = (folder / "Cargo.pins").read_text(encoding="utf-8")
    lock.write_text(re.sub(r"^(checksum = )", rf"{source}\n\1", pins,
                           flags=re.MULTILINE), encoding="utf-8")


# ---- the run ----------------------------------------------------------------

def judge(language, peer, write):
    """Runs a peer; returns what is wrong."""
    results = exchange.exchange(peer)
    lines = exchange.known(HERE / "differences.txt", peer.name)
    wrong = [f"{result.check}, {result.document}: {result.text[:300]}"
             for result in results if result.text and
             not any(line.explains(result) for line in lines)]
    wrong += [f"mended: {line.check} | {line.document} | {line.text}"
              for line in lines
              if not any(result.text and line.explains(result)
                         for result in results)]
    if not report.stands(language, peer, results, lines, write):
        wrong.append("docs/conformance.md is not up to date: "
                     f"scripts/peers --write {language}")
    good = sum(not result.text for result in results)
    print(f"{peer.name} {peer.version}: {good} of {len(results)} hold, "
          f"{len(results) - good} differ as explained or {len(wrong)} wrongly",
          flush=True)
    return wrong


def run_language(language, write):
    wrong, seen = [], 0
    for peer in LANGUAGES[language]():
        seen += 1
        for text in judge(language, peer, write):
            wrong.append(f"{peer.name}: {text}")
    if language in PROGRAMS:
        wrong += PROGRAMS[language](programs.environment(BUILD))
    return wrong, seen


def run_all(names, write):
    passed = failed = skipped = 0
    for language in names:
        try:
            wrong, seen = run_language(language, write)
        except Absent as why:
            print(f"{language} is skipped: {why}")
            skipped += 1
            continue
        except Broken as why:
            wrong, seen = [str(why)], 1
        for text in wrong:
            print(text)
        failed += bool(wrong)
        passed += seen - bool(wrong)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    if failed:
        return 1
    return 0 if passed else SKIPPED


def run_languages(names, write):
    unknown = set(names) - set(LANGUAGES) - {"all"}
    if unknown:
        return f"there is no language {', '.join(sorted(unknown))}"
    if not names or "all" in names:
        names = list(LANGUAGES)
    return run_all(names, write)
