#!/usr/bin/env python3
"""Fails when a file includes what its layer may not see.
Usage: check_layers.py [ROOT]

MAY is the house rule: a folder (or one file) and what its files may include.
The rule of the longest matching path wins. Names in <> are system headers; ISO
C ones are free everywhere, those of POSIX and Linux where SYSTEM says so.
"""
import os
import re
import sys

ISO = {
    "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h",
    "locale.h", "math.h", "signal.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h",
    "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h",
    "time.h", "wchar.h",
}
POSIX = {
    "dirent.h", "dlfcn.h", "fcntl.h", "link.h", "poll.h", "pthread.h", "sched.h",
    "semaphore.h",
    "strings.h", "unistd.h", "arpa/inet.h", "netinet/in.h", "sys/mman.h",
    "sys/resource.h", "sys/select.h", "sys/socket.h", "sys/stat.h",
    "sys/time.h", "sys/types.h", "sys/uio.h", "sys/un.h", "sys/wait.h",
    # Linux
    "linux/futex.h", "sys/epoll.h", "sys/eventfd.h", "sys/ioctl.h",
    "sys/prctl.h", "sys/syscall.h", "sys/timerfd.h", "ucontext.h",
}
SYSTEM = ("runtime/core/sync.c", "runtime/core/thread.c",
          "runtime/core/thread.h",
          "runtime/check/", "runtime/tck/",
          "runtime/uv/", "runtime/devices/", "tools/", "tests/",
          "examples/", "bench/")
VENDOR = {"cuda.c": "cuda.h", "hip.c": "hip/hip_runtime_api.h",
          "opencl.c": "CL/cl.h"}
UV = ["uv/hub.h", "uv/inbox.h", "uv/lane.h", "uv/loop.h"]
FLOORS = ["core/", "uv/", "devices/", "stream/", "check/", "operators/",
          "adapters/", "tck/"]
MAY = {
    "include/uvarrow/arrow_abi.h": [],
    "include/uvarrow/base.h": [],
    "include/uvarrow/": ["uvarrow/"],
    "runtime/core/": ["uvarrow/arrow_abi.h", "uvarrow/base.h",
                      "uvarrow/arrow.h", "core/"],
    "runtime/uv/": ["<uv.h>", "uvarrow/base.h", "uvarrow/runtime.h", "core/",
                    "uv/"],
    "runtime/devices/": ["uvarrow/base.h", "uvarrow/arrow_abi.h",
                         "uvarrow/arrow.h", "uvarrow/device.h", "core/",
                         "devices/"],
    "runtime/stream/": ["uvarrow/", "core/", "uv/", "stream/",
                        "devices/watch.h"],
    "runtime/stream/checked.c": ["uvarrow/", "core/", "stream/",
                                 "check/checked_task.h", "check/handler_check.h",
                                 "check/breach_line.h"],
    "runtime/check/": ["uvarrow/", "core/", "check/"],
    "runtime/operators/": ["uvarrow/", "core/", *UV, "devices/copy.h",
                           "devices/notice.h",
                           "devices/registry.h", "devices/watch.h", "stream/",
                           "operators/"],
    "runtime/adapters/": ["uvarrow/", "core/", *UV, "stream/", "adapters/",
                          "check/clauses.h"],
    "runtime/tck/": ["uvarrow/", "core/", "check/", "tck/"],
    "examples/": ["uvarrow/", "<uv.h>", "<glib.h>", "<glib-unix.h>", "<CL/cl.h>",
                  "<cuda_runtime_api.h>", "<arrow-adbc/adbc.h>"],
    "tools/": ["uvarrow/", "<uv.h>", "<arrow-adbc/adbc.h>",
               "arrow-adbc/adbc.h"],
    "bench/": ["uvarrow/", "<uv.h>", "<CL/cl.h>"],
    "tests/": ["uvarrow/", *FLOORS, "support/", "<uv.h>", "<check.h>",
               "<arrow-adbc/adbc.h>", "arrow-adbc/adbc.h",
               "<CL/cl.h>", "<vulkan/vulkan.h>", "<cuda.h>"],
    "tests/abi/": ["uvarrow/", "support/", "<check.h>", "<arrow/c/abi.h>",
                   "<arrow/c/dlpack_abi.h>", "devices/cuda_abi.h",
                   "devices/hip_abi.h", "devices/opencl_abi.h", "<CL/cl.h>",
                   "<cuda.h>", "<hip/hip_runtime_api.h>"],
    "tests/install/": ["<uvarrow/uvarrow.h>", "<uvarrow/tck.h>", "<uv.h>"],
    "tests/fuzz/": ["uvarrow/", *FLOORS, "support/", "fuzz/", "<uv.h>"],
    "tests/fuzz/ground_sim.c": ["uvarrow/", "fuzz/", "sim/"],
    "tests/programs/": ["uvarrow/", "support/gpu_program.h", "support/world.h",
                        "<uv.h>"],
    "tests/sim/": ["uvarrow/", *FLOORS, "sim/", "support/", "<uv.h>",
                   "<check.h>"],
    "tests/model/": ["uvarrow/", *FLOORS, "sim/", "model/", "<check.h>"],
    "tests/unit/core/": ["uvarrow/arrow_abi.h", "uvarrow/base.h",
                         "uvarrow/arrow.h", "core/", "support/", "<check.h>"],
    "tests/unit/tools/": ["uvarrow/", "support/", "<uv.h>", "<check.h>",
                          "<arrow-adbc/adbc.h>", "arrow-adbc/adbc.h"],
}
# Headers that are found in place of others, by whose names they go.
STAND_INS = ("tests/sim/core/",)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def rule(path):
    keys = [k for k in MAY if path == k or (k.endswith("/") and path.startswith(k))]
    return MAY[max(keys, key=len)] if keys else []


def beside(path, name):
    """Tools (and their tests), examples and benches include the headers of
    their own folder by the bare name."""
    own = ("tools/", "examples/", "bench/", "tests/unit/tools/")
    return path.startswith(own) and "/" not in name


def allowed(path, mark, name):
    if mark == "<":
        return (name in ISO or (name in POSIX and path.startswith(SYSTEM))
                or f"<{name}>" in rule(path)
                or VENDOR.get(os.path.basename(path)) == name)
    return beside(path, name) or any(
        name == a or (a.endswith("/") and name.startswith(a))
        for a in rule(path))


def graph(root):
    for top in ("include", "runtime", "examples", "tests", "tools", "bench"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for f in sorted(files):
                if f.endswith((".c", ".h")):
                    path = os.path.relpath(os.path.join(folder, f), root)
                    with open(os.path.join(root, path),
                              encoding="utf-8") as text:
                        yield path, INCLUDE.findall(text.read())


def circles(edges):
    """Headers that include each other in a loop."""
    seen, stack = {}, []

    def visit(n):
        seen[n] = 1
        stack.append(n)
        for m in edges.get(n, ()):
            if seen.get(m) == 1:
                yield stack[stack.index(m):] + [m]
            elif m not in seen:
                yield from visit(m)
        stack.pop()
        seen[n] = 2

    for n in list(edges):
        if n not in seen:
            yield from visit(n)


def main(root):
    bad, edges, stems = [], {}, {}
    for path, includes in graph(root):
        name = re.sub(r"^(include|runtime|tests)/", "", path)
        edges[name] = [n for m, n in includes if m == '"']
        if path.endswith(".h") and not path.startswith(STAND_INS):
            stems.setdefault(os.path.basename(path), []).append(path)
        bad += [f"{path}: may not include {m}{n}{'>' if m == '<' else m}"
                for m, n in includes if not allowed(path, m, n)]
        own = path[:-2] + ".h"
        if (path.startswith("runtime/") and path.endswith(".c")
                and os.path.exists(os.path.join(root, own))):
            if not includes or includes[0][1] != own[len("runtime/"):]:
                bad.append(f"{path}: its own header must be its first include")
    bad += ["circle: " + " -> ".join(c) for c in circles(edges)]
    bad += [f"two headers share one name: {', '.join(p)}"
            for p in stems.values() if len(p) > 1]
    print("\n".join(bad) or "layers hold")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
