# SPDX-License-Identifier: Apache-2.0
"""python -m uvarrow_tck: the command uvarrow-tck, and the files beside it."""
import os
import shutil
import sys

from uvarrow_tck import INCLUDE, TEMPLATES, TOOL

HELP = """
Beside it:
  python -m uvarrow_tck --include               prints the folder of uvarrow/tck.h
  python -m uvarrow_tck --template LANG FOLDER  makes a folder with a subject to
                                                start from: %s
"""


def template(language, folder):
    try:
        shutil.copytree(TEMPLATES / language, folder)
    except OSError as error:
        return f"uvarrow-tck: no template {language} in {folder}: {error}"
    return None


def main():
    args = sys.argv[1:]
    if args == ["--include"]:
        print(INCLUDE)
        return None
    if args[:1] == ["--template"]:
        if len(args) != 3:
            return "uvarrow-tck: --template needs a language and a folder"
        return template(*args[1:])
    if args in (["--help"], ["-h"]):
        print(HELP.strip() % ", ".join(sorted(os.listdir(TEMPLATES))), end="\n\n",
              flush=True)
    os.execv(TOOL, [str(TOOL), *args])


if __name__ == "__main__":
    sys.exit(main())
