# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: network namespaces behind a bridge, all inside namespaces
of this process, which the kernel removes with it.

    c, 10.77.0.10    the process itself
    1, 10.77.0.1     a host, with servers; and so on

A host that is cut off neither sends nor receives a packet, and is told nothing.
"""
import os
import shutil
import subprocess
import sys

from outcome import skip

NET = "10.77.0"
INSIDE = "UVA_HOSTS_INSIDE"
# Namespaces of users, networks, mounts and processes; the child is process 1
UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid",
           "--fork", "--kill-child", "--mount-proc")


def enter():
    """Runs the program again in namespaces of its own, and exits as it did; returns
    in the program that runs there. Skips the test where that is forbidden."""
    if os.environ.get(INSIDE):
        return
    for tool in ("unshare", "ip", "tc"):
        if shutil.which(tool) is None:
            skip(f"{tool} is not installed")
    probe = subprocess.run(
        [*UNSHARE, "sh", "-c", "ip link add name one type veth peer name two"],
        capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"no right to network namespaces: {probe.stderr.strip()[-200:]}")
    done = subprocess.run([*UNSHARE, sys.executable, *sys.argv],
                          env={**os.environ, INSIDE: "1"})
    sys.exit(done.returncode if done.returncode >= 0 else 1)


def ip(*words, host=None):
    """Runs a command of `ip`, in the namespace of a host."""
    subprocess.run(["ip", *(["-n", host] if host else []), *words], check=True)


def address(host):
    return f"{NET}.{host}"


def plug(host, name):
    """Connects a host, or this process, to the bridge."""
    at = None if host == "c" else host
    ip("link", "add", "name", "eth0", "type", "veth", "peer", "name", f"p{host}",
       "netns", "sw", host=at)
    ip("link", "set", f"p{host}", "master", "bridge", host="sw")
    ip("link", "set", f"p{host}", "up", host="sw")
    ip("addr", "add", f"{NET}.{name}/24", "dev", "eth0", host=at)
    ip("link", "set", "lo", "up", host=at)
    ip("link", "set", "eth0", "up", host=at)


def up(hosts):
    """Makes the bridge and the hosts, which end with this process."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    ip("netns", "add", "sw")
    ip("link", "add", "name", "bridge", "type", "bridge", host="sw")
    ip("link", "set", "bridge", "up", host="sw")
    for host in hosts:
        ip("netns", "add", host)
        plug(host, host)
    plug("c", "10")


def cut(host):
    ip("link", "set", f"p{host}", "down", host="sw")


def mend(host):
    ip("link", "set", f"p{host}", "up", host="sw")


def processes(host):
    """The numbers of the processes on a host"""
    return [int(pid) for pid in subprocess.run(
        ["ip", "netns", "pids", host], check=True, capture_output=True,
        text=True).stdout.split()]


def slow(host, rate):
    """What the host sends is limited, to 10mbit for example. Returns whether the
    kernel can do that."""
    return subprocess.run(
        ["tc", "-n", host, "qdisc", "replace", "dev", "eth0", "root", "tbf",
         "rate", rate, "burst", "32k", "latency", "400ms"],
        capture_output=True).returncode == 0


def fast(host):
    subprocess.run(["tc", "-n", host, "qdisc", "del", "dev", "eth0", "root"],
                   capture_output=True)
