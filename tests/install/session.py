# SPDX-License-Identifier: Apache-2.0
"""Sessions: the commands in the first comment of a program, and their output.

Lines that begin with `$ ` are commands, the lines below each are exactly its
output; an empty line ends the session. A command that ends with a backslash goes
on in the next line.
"""
import re
import subprocess

PATIENCE = 600  # seconds


def session_of(path):
    """Returns [command, output] for each command in the first comment."""
    with open(path, encoding="utf-8") as file:
        comment = file.read().split("*/", 2)[1]
    session = []
    for line in comment.rstrip().splitlines():
        line = re.sub(r"^ \*( {5}| *$)", "", line)
        if session and session[-1][0].endswith("\\"):
            session[-1][0] = session[-1][0][:-1] + line.strip()
        elif line.startswith("$ "):
            session.append([line[2:], ""])
        elif session and not line:
            break
        elif session:
            session[-1][1] += line + "\n"
    return session


def fault_of(command, wanted, folder, environment=None):
    """Runs the command in the folder. Returns what was wrong, or None."""
    result = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command], cwd=folder,
        env=environment, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    if (result.returncode, result.stdout) == (0, wanted):
        return None
    return (f"{command}\nexit {result.returncode}, printed:\n{result.stdout}"
            f"wanted:\n{wanted}")
