#!/usr/bin/env python3
"""Passes one document through a peer, in a process of its own, as it may crash:
alone.py MODULE CLASS DOCUMENT prints what is wrong."""

import importlib
import signal
import subprocess
import sys


def text(peer, document):
    """What is wrong with a document, or how the process ended."""
    done = subprocess.run(
        [sys.executable, __file__, type(peer).__module__, type(peer).__name__,
         document], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode < 0:
        return f"the process ends: {signal.Signals(-done.returncode).name}"
    return done.stdout


def main(module, kind, document):
    import exchange
    peer = getattr(importlib.import_module(module), kind)()
    given = exchange.documents()[document]
    found = exchange.tried(exchange.through, peer, given)
    sys.stdout.write(exchange.judged(given, found, peer.difference))


if __name__ == "__main__":
    main(*sys.argv[1:])
