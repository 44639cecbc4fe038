# SPDX-License-Identifier: Apache-2.0
"""An environment of Python for the peers of the bench."""
import os
import subprocess


def environment(venv, folder, wanted):
    """Makes it in FOLDER, of the Python of VENV, which does not change, unless
    it is there already; gives the path of its Python. `wanted` is a file of
    requirements."""
    path = os.path.join(folder, "venv")
    stamp = os.path.join(path, "installed.txt")
    with open(wanted, encoding="utf-8") as file:
        text = file.read()
    if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != text:
        subprocess.run([f"{venv}/bin/python", "-m", "venv", "--clear", path],
                       check=True)
        subprocess.run([f"{path}/bin/python", "-m", "pip", "--quiet",
                        "--disable-pip-version-check", "install", "--no-deps",
                        "-r", wanted], check=True)
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(text)
    return f"{path}/bin/python"
