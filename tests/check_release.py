#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if scripts/release makes what it has to refuse, refuses without a sentence
that says what to do, or makes a source archive, a list of contents or sums that are
wrong or differ between clones. All is done in copies of this source. Exits with 77
where this is no clone. Usage: check_release.py
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from check_packaging import ROOT, SONAMES, VERSIONS

NEVER_GLOBAL = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_CONFIG_SYSTEM": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"}
for role in ("AUTHOR", "COMMITTER"):
    NEVER_GLOBAL[f"GIT_{role}_NAME"] = NEVER_GLOBAL[f"GIT_{role}_EMAIL"] = "test"
    NEVER_GLOBAL[f"GIT_{role}_DATE"] = "2026-01-02T03:04:05Z"
UNRELEASED = ", not released yet\n"


def git(at, *words):
    return subprocess.run(["git", *words], cwd=at, check=True, text=True,
                          stdout=subprocess.PIPE, env=NEVER_GLOBAL).stdout


def release(at, *words):
    """Returns what it printed, and whether it succeeded."""
    ran = subprocess.run([at / "scripts/release", *words], cwd=at, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=NEVER_GLOBAL, check=False)
    return ran.stdout, ran.returncode == 0


def copy_source(at):
    """A repository of the files here, committed or not."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"],
                            cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, at / name, follow_symlinks=False)
        elif name and (ROOT / name).is_symlink(): # to a folder
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            (at / name).symlink_to(os.readlink(ROOT / name))
    git(at, "init", "-q")
    git(at, "add", "-A")
    git(at, "commit", "-q", "-m", "source")


def version_of(at):
    text = (at / "include/uvarrow/base.h").read_text()
    return ".".join(re.findall(
        r"#define UVA_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def edit(path, old, new):
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new, 1))


def expect_refused(at, why, *wanted, words=("--trial", "--once", "source")):
    text, succeeded = release(at, *words)
    if succeeded or not all(word in text for word in wanted):
        sys.exit(f"{why}: refused without {wanted}:\n{text}")


def committed(at, path, old, new, *wanted, words=("--trial", "--once", "source")):
    """One commit that has to be refused."""
    edit(at / path, old, new)
    git(at, "commit", "-qam", "edit")
    expect_refused(at, f"{path}: {new!r} for {old!r}", *wanted, words=words)
    git(at, "reset", "-q", "--hard", "HEAD~")


# ---- what is refused --------------------------------------------------------

def check_refusals(at):
    version = version_of(at)
    (at / "new.txt").write_text("new")
    expect_refused(at, "a new file", "new.txt", "Commit them")
    (at / "new.txt").unlink()
    edit(at / "README.md", "a", "b")
    expect_refused(at, "a change", "README.md", "Commit them")
    git(at, "checkout", "-q", "README.md")
    (at / "full").mkdir()
    (at / "full/a.o").write_text("")
    expect_refused(at, "a full folder", "is not empty",
                   words=("--trial", "--out", at / "full", "source"))
    expect_refused(at, "a part", "no part is", "debian", words=("sources",))

    for name in VERSIONS | SONAMES:
        wrong = version if name in VERSIONS else version.rpartition(".")[0]
        found = re.findall((VERSIONS | SONAMES)[name],
                           (at / name).read_text(), re.M)
        assert wrong in found, (name, found)
        committed(at, name, wrong, "7.7.7", "does not agree", name, "7.7.7",
                  "Write the same version")
    patch = "#define UVA_VERSION_PATCH "
    committed(at, "include/uvarrow/base.h", patch, f"{patch}9", "does not agree",
              "CHANGELOG.md", "node/package.json")

    heading = f"## {version}{UNRELEASED}"
    committed(at, "CHANGELOG.md", heading, heading + "\n## 0.0.1, never\n",
              "has no line on", version, "write what users notice")
    expect_refused(at, "no date", "'not released yet'", "write the date",
                   words=("--once", "source"))
    git(at, "commit", "-q", "--allow-empty", "-m", "later")
    git(at, "tag", f"v{version}", "HEAD~")
    expect_refused(at, "another tag", f"v{version} is another commit", "raise")
    git(at, "tag", "-d", f"v{version}")
    git(at, "reset", "-q", "--hard", "HEAD~")


def check_no_clone(at):
    """In the folder of an archive"""
    shutil.rmtree(at / ".git")
    NEVER_GLOBAL["GIT_CEILING_DIRECTORIES"] = str(at.parent)
    expect_refused(at, "no clone", "this is no clone")


# ---- what is made -----------------------------------------------------------

def check_sums(out):
    lines = (out / "SHA256SUMS").read_text().splitlines()
    listed = dict(reversed(line.split("  ")) for line in lines)
    there = {str(path.relative_to(out)) for path in out.rglob("*")
             if path.is_file()} - {"SHA256SUMS"}
    assert set(listed) == there and len(there) == 3, (listed, there)
    for name, digest in listed.items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest, name
    return listed


def check_source(at, out, version):
    with tarfile.open(out / f"source/uvarrow-{version}.tar.gz") as archive:
        members = [member for member in archive if not member.isdir()]
    names = {member.name.removeprefix(f"uvarrow-{version}/") for member in members}
    assert names == set(git(at, "ls-files").splitlines()), names
    times = {member.mtime for member in members}
    assert times == {int(git(at, "log", "-1", "--format=%ct"))}, times


def check_contents(out, version, digests):
    """The rules of SPDX 2.3 for what the list has"""
    text = (out / f"uvarrow-{version}.spdx.json").read_text()
    document = json.loads(text)
    assert document["spdxVersion"] == "SPDX-2.3"
    assert document["dataLicense"] == "CC0-1.0"
    assert document["documentNamespace"].startswith("https://")
    assert document["creationInfo"]["created"] == "2026-01-02T03:04:05Z", text
    packages = {package["SPDXID"]: package for package in document["packages"]}
    assert len(packages) == len(document["packages"]), text
    for name, package in packages.items():
        assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name), name
        assert package["name"] and package["downloadLocation"], name
    source = f"source/uvarrow-{version}.tar.gz"
    here, = (name for name, package in packages.items()
             if package["name"] == source)
    assert packages[here]["checksums"] == [
        {"algorithm": "SHA256", "checksumValue": digests[source]}], text
    related = {(one["spdxElementId"], one["relationshipType"],
                one["relatedSpdxElement"]) for one in document["relationships"]}
    assert ("SPDXRef-DOCUMENT", "DESCRIBES", here) in related, text
    libuv, = (name for name, package in packages.items()
              if package["name"] == "libuv")
    assert (here, "DEPENDS_ON", libuv) in related, text
    for one, _, other in related:
        assert {one, other} <= {*packages, "SPDXRef-DOCUMENT"}, (one, other)


def check_made(at, temp):
    """Of a version with its date, in two clones at other times"""
    version = version_of(at)
    edit(at / "CHANGELOG.md", UNRELEASED, ", 2026-01-02\n")
    git(at, "commit", "-qam", "date")
    other = temp / "other/deeper"
    git(temp, "clone", "-q", str(at), str(other))
    outs = []
    for clone, words in ((at, []), (other, ["--once"])):
        outs.append(clone.parent / f"out-{clone.name}")
        text, succeeded = release(clone, *words, "--out", outs[-1], "source")
        assert succeeded and ("twice the same" in text) == (not words), text
        assert not git(clone, "status", "--porcelain"), "leaves changes"
    sums = [check_sums(out) for out in outs]
    assert sums[0] == sums[1], sums
    check_source(at, outs[0], version)
    check_contents(outs[0], version, sums[0])
    log = (at / "CHANGELOG.md").read_text()
    notes = (outs[0] / "NOTES.md").read_text()
    assert notes in log and "\n## " not in notes and len(notes) > 99, notes

    edit(at / "scripts/release_sbom.py", "json.dumps(document, indent=1)",
         "json.dumps(document, indent=1) + str(time.monotonic_ns())")
    git(at, "commit", "-qam", "never the same")
    expect_refused(at, "two makings", "made twice, these differ",
                   f"uvarrow-{version}.spdx.json", words=("source",))


def main():
    if subprocess.run(["git", "rev-parse", "-q", "HEAD"], cwd=ROOT, check=False,
                      stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode:
        print("this is no clone")
        return 77
    with tempfile.TemporaryDirectory() as name:
        at = pathlib.Path(name) / "source"
        at.mkdir()
        copy_source(at)
        check_refusals(at)
        check_made(at, pathlib.Path(name))
        check_no_clone(at)
    print("what has to be refused is, and two clones give the same files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
