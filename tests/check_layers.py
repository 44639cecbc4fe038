#!/usr/bin/env python3
"""Fails when a file includes a header that its layer may not see, or when .c
files call each other in a circle, or when a file other than the platform's
asks which system it is compiled for.
Usage: check_layers.py [ROOT | --self-test]

MAY lists a folder (or one file) and the headers that its files may include.
The rule of the longest matching path applies. Names in <> are system headers:
ISO C's are free everywhere, POSIX's and Linux's in the folders of SYSTEM.

A .c file below CODE calls another one if it calls a function that is defined
there and is not static: directly, or through a macro or a static inline
function of a header. --self-test proves that a circle is found.
"""
import os
import re
import sys
import tempfile

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
    "sys/time.h", "sys/types.h", "sys/uio.h", "sys/un.h",
    "sys/utsname.h", "sys/wait.h",
    # Windows
    "io.h", "malloc.h", "share.h", "windows.h", "winsock2.h",
    # Linux
    "linux/filter.h", "linux/futex.h", "linux/seccomp.h", "sys/epoll.h",
    "sys/eventfd.h", "sys/ioctl.h",
    "sys/prctl.h", "sys/syscall.h", "sys/timerfd.h", "ucontext.h",
}
SYSTEM = ("runtime/base/platform_linux.c", "runtime/base/platform_posix.c",
          "runtime/base/platform_unix.c", "runtime/base/platform_windows.c",
          "runtime/base/platform.h",
          "runtime/loop/readiness_unix.c", "runtime/io/file_writer.c",
          "runtime/io/file_reader.c", "runtime/io/file_map.c",
          "runtime/adbc/library.c", "runtime/adbc/environment.c",
          "runtime/adbc/find.c", "runtime/adbc/interrupt.c",
          "tck/", "tools/", "tests/", "examples/", "bench/", "python/",
          "node/")
# POSIX threads, which Windows has as well with the compilers that we use, are
# free in these folders.
THREADS = {"pthread.h", "sched.h"}
THREADED = ("runtime/base/", "runtime/exec/", "runtime/loop/", "runtime/device/",
            "runtime/check/", "runtime/observe/")
VENDOR = {"cuda.c": "cuda.h", "hip.c": "hip/hip_runtime_api.h",
          "opencl.c": "CL/cl.h"}
BELOW = ["uvarrow/", "base/", "arrow/", "protocol/"]
LOOP = ["loop/rt.h", "loop/mailbox.h", "loop/wakeup.h", "loop/loop.h",
        "exec/lane.h"]
LAYERS = ["base/", "arrow/", "protocol/", "exec/", "loop/", "device/", "check/",
          "observe/", "stream/", "array/", "source/", "stage/", "sink/", "io/", "adbc/", "tck/"]
MAY = {
    "include/uvarrow/arrow_abi.h": [],
    "include/uvarrow/base.h": [],
    "include/uvarrow/": ["uvarrow/"],
    "runtime/base/": ["uvarrow/base.h", "base/"],
    "runtime/arrow/": ["uvarrow/arrow_abi.h", "uvarrow/base.h",
                       "uvarrow/arrow.h", "base/", "arrow/"],
    "runtime/protocol/": ["uvarrow/arrow_abi.h", "uvarrow/base.h",
                          "uvarrow/check.h", "base/", "protocol/"],
    "runtime/exec/": ["uvarrow/base.h", "uvarrow/runtime.h", "base/", "exec/"],
    "runtime/loop/": ["<uv.h>", "uvarrow/base.h", "uvarrow/runtime.h",
                      "uvarrow/trace.h", "base/", "exec/", "loop/",
                      "observe/trace_file.h"],
    "runtime/observe/": [*BELOW, *LOOP, "observe/"],
    "runtime/observe/observe.c": [*BELOW, "stream/stream_impl.h", "observe/"],
    "runtime/observe/observe.h": ["stream/producer.h"],
    "runtime/observe/stats.c": [*BELOW, "stream/stream_impl.h"],
    "runtime/device/": ["uvarrow/base.h", "uvarrow/arrow_abi.h",
                        "uvarrow/arrow.h", "uvarrow/device.h", "base/",
                        "arrow/", "device/"],
    "runtime/check/": [*BELOW, "check/"],
    "runtime/stream/": [*BELOW, *LOOP, "observe/", "stream/", "device/event_wait.h",
                        "device/registry.h"],
    "runtime/stream/event_work.c": [*BELOW, *LOOP, "stream/", "device/driver_gate.h",
                                    "device/registry.h"],
    "runtime/stream/check_hop.c": [*BELOW, "observe/", "stream/", "check/checked_task.h",
                                   "check/handler_check.h",
                                   "check/breach_text.h"],
    "runtime/source/": [*BELOW, *LOOP, "stream/", "source/"],
    "runtime/array/": [*BELOW, *LOOP, "device/wait_error.h",
                       "device/driver_gate.h", "device/registry.h",
                       "device/event_wait.h", "stream/", "array/"],
    "runtime/stage/": [*BELOW, *LOOP, "observe/observe.h", "device/copy.h", "device/wait_error.h",
                      "device/driver_gate.h",
                       "device/registry.h", "device/event_wait.h", "stream/",
                       "stage/"],
    "runtime/io/": ["uvarrow/", "<uv.h>", "io/"],
    "runtime/adbc/": ["uvarrow/", "<uv.h>", "adbc/"],
    "runtime/io/ipc_compress.c": ["uvarrow/", "io/", "<lz4frame.h>",
                                  "<zstd.h>"],
    "runtime/sink/": [*BELOW, *LOOP, "stream/", "sink/"],
    "tck/": [*BELOW, "check/", "tck/"],
    "examples/": ["uvarrow/", "<uv.h>", "<glib.h>", "<glib-unix.h>", "<CL/cl.h>",
                  "<asio.hpp>", "<boost/asio.hpp>", "<cuda_runtime_api.h>",
                  "<arrow-adbc/adbc.h>"],
    "tools/": ["uvarrow/", "<uv.h>", "<arrow-adbc/adbc.h>",
               "arrow-adbc/adbc.h"],
    "tools/serve/": ["uvarrow/", "<uv.h>", "<llhttp.h>", "<jansson.h>",
                     "commands.h", "lines.h", "loop.h", "output.h", "report.h"],
    "tools/loop.c": ["uvarrow/", "<uv.h>", "loop/own_loop.h"],
    "tools/sql.c": ["uvarrow/", "adbc/sql.h"],
    "tools/guess.c": ["uvarrow/", "adbc/uri.h"],
    "tools/glyph.c": ["base/utf8.h"],
    "tools/script.c": ["uvarrow/", "adbc/known.h", "adbc/sql.h"],
    "tools/plain_types.c": ["uvarrow/", "arrow/cast.h", "base/memory.h"],
    "tools/from.c": ["uvarrow/", "client/client.h"],
    "tools/client/": ["uvarrow/", "<uv.h>", "<llhttp.h>", "<jansson.h>",
                      "access.h", "bytes.h", "loop.h", "transport.h",
                      "options.h"],
    "tools/serve/compressor.c": ["uvarrow/", "<zlib.h>", "<zstd.h>"],
    "tools/serve/reading.c": ["adbc/sql.h"],
    "tools/serve/response.c": ["base/utf8.h"],
    "tools/serve/tls.c": ["uvarrow/", "<openssl/err.h>", "<openssl/ssl.h>",
                          "<openssl/x509v3.h>",
                          "<uv.h>"],
    "bench/": ["uvarrow/", "<uv.h>", "<CL/cl.h>", "<node_api.h>"],
    "node/": ["uvarrow/", "addon.h", "<node_api.h>", "<uv.h>"],
    "python/": ["uvarrow/", "core/", "adbc/closed.h", "<Python.h>", "<uv.h>"],
    "tests/": ["uvarrow/", *LAYERS, "devices/", "support/", "<uv.h>", "<check.h>",
               "<arrow-adbc/adbc.h>", "arrow-adbc/adbc.h",
               "<CL/cl.h>", "<vulkan/vulkan.h>", "<cuda.h>"],
    "tests/unit/serve/test_coding.c": ["support/", "<check.h>", "<zlib.h>",
                                       "<zstd.h>"],
    "tests/interop/": ["uvarrow/", "interop/", "<uv.h>", "<arrow-adbc/adbc.h>"],
    "tests/gpu/": ["gpu/"],
    "tests/abi/": ["uvarrow/", "support/", "<check.h>", "<arrow/c/abi.h>",
                   "<arrow/c/dlpack_abi.h>",
                   "<arrow-adbc/adbc.h>", "device/cuda_abi.h",
                   "device/hip_abi.h", "device/opencl_abi.h", "<CL/cl.h>",
                   "device/vulkan_abi.h", "<vulkan/vulkan.h>",
                   "<cuda.h>", "<hip/hip_runtime_api.h>"],
    "tests/install/": ["<uvarrow/uvarrow.h>", "<uvarrow/tck.h>",
                       "<uvarrow/io.h>", "<uvarrow/adbc.h>", "<uv.h>"],
    "tests/fuzz/": ["uvarrow/", *LAYERS, "support/", "fuzz/", "<uv.h>"],
    "tests/fuzz/fixture_sim.c": ["uvarrow/", "fuzz/", "sim/"],
    "tests/fuzz/fuzz_http.c": ["uvarrow/", "fuzz/", "parameters.h",
                               "proxies.h", "request.h", "url.h"],
    "tests/fuzz/fuzz_options.c": ["uvarrow/", "fuzz/", "options.h"],
    "tests/fuzz/fuzz_serve_options.c": ["uvarrow/", "fuzz/", "settings.h"],
    "tests/programs/": ["uvarrow/", "support/gpu_program.h", "support/world.h",
                        "adbc_draft.h", "<uv.h>"],
    "tests/programs/interface/": ["uvarrow/", "data.h", "<uv.h>"],
    "tests/recipes/": ["uvarrow/", "recipe.h", "recipe_lines.h", "integers.h",
                       "database.h", "print.h", "<uv.h>"],
    "tests/sim/": ["uvarrow/", *LAYERS, "sim/", "support/", "<uv.h>",
                   "<check.h>"],
    "tests/model/": ["uvarrow/", *LAYERS, "sim/", "model/", "<check.h>"],
    "tests/unit/base/": ["uvarrow/", "base/", "support/", "<check.h>"],
    "tests/unit/arrow/": ["uvarrow/", "base/", "arrow/", "support/",
                          "<check.h>"],
    "tests/unit/protocol/": ["uvarrow/", "base/", "protocol/", "support/",
                             "<check.h>"],
    "tests/unit/adbc/": ["uvarrow/", *LAYERS, "support/", "<uv.h>",
                         "<check.h>", "<sqlite3ext.h>"],
    "tests/unit/serve/": ["uvarrow/", "support/", "<uv.h>", "<check.h>",
                          "<openssl/crypto.h>", "<openssl/ssl.h>"],
    "tests/unit/tools/": ["uvarrow/", "support/", "<uv.h>", "<check.h>",
                          "<arrow-adbc/adbc.h>", "arrow-adbc/adbc.h"],
}
TOPS = ("include", "runtime", "tck", "examples", "tests", "tools", "bench",
        "python", "node")
# Folders from which files include each other without naming the folder.
BASES = ("include/", "runtime/", "tests/", "python/src/", "node/src/")
# The folders in which .c files must not call each other in circles.
CODE = ("runtime/", "tck/")
# Circles that are still to be removed, one row each. A circle is tolerated if
# all its files stand in one row; a row without a circle is an error.
KNOWN_CIRCLES = ()
# Only these files of CODE may ask which system it is; CMake picks among them.
OF_SYSTEM = re.compile(r"/(platform|readiness)_[a-z]+\.c$")
IF_SYSTEM = re.compile(
    r"^\s*#\s*(?:if|elif)[^\n]*\b(_WIN32|_WIN64|__MINGW32__|__APPLE__|"
    r"__linux__|__unix__|__FreeBSD__|__GLIBC__|__CYGWIN__)\b", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def rule(path):
    keys = [k for k in MAY if path == k or (k.endswith("/") and path.startswith(k))]
    return MAY[max(keys, key=len)] if keys else []


def beside(path, name):
    """Whether a tool (or its test), an example or a bench includes a header of
    the same folder by the bare name"""
    own = ("tools/", "examples/", "bench/", "tests/unit/tools/",
           "tests/unit/serve/")
    return path.startswith(own) and "/" not in name


def allowed(path, mark, name):
    if mark == "<":
        return (name in ISO or (name in POSIX and path.startswith(SYSTEM))
                or (name in THREADS and path.startswith(THREADED))
                or f"<{name}>" in rule(path)
                or VENDOR.get(os.path.basename(path)) == name)
    return beside(path, name) or any(
        name == a or (a.endswith("/") and name.startswith(a))
        for a in rule(path))


def files(root):
    """(path, text) of each C file"""
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    with open(os.path.join(root, path),
                              encoding="utf-8") as file:
                        yield path, file.read()


def included_as(path):
    """The name by which other files include this one"""
    base = next((b for b in BASES if path.startswith(b)), "")
    return path[len(base):]


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


# ---- calls between files ----------------------------------------------------

NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'
                     r"'(?:\\.|[^'\\\n])*'", re.S)
MACRO = re.compile(r"^#\s*define\s+(\w+)\(((?:[^\n]*\\\n)*[^\n]*)", re.M)
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


def functions(text):
    """(name, whether it is static, body). In this style the braces of a body
    stand in the first column, below the head."""
    head, body = [], None
    for line in text.split("\n"):
        if body is not None:
            body.append(line)
            if line.startswith("}"):
                call = CALL.search(" ".join(head))
                if call:
                    yield (call.group(1), head[0].startswith("static"),
                           "\n".join(body))
                head, body = [], None
        elif line.startswith("{"):
            body = [line]
        elif not line.strip() or line.startswith("#"):
            head = []
        else:
            head = [line] if head and head[-1].endswith(";") else head + [line]


def calls(sources):
    """{caller: {callee: names of functions}} among the .c files"""
    defined, inline, bodies = {}, {}, {}
    for path, text in sources:
        text = NO_CODE.sub(" ", text)
        own = list(functions(text))
        if path.endswith(".h"):
            inline.update({name: set(CALL.findall(body))
                           for name, _, body in own})
            inline.update({name: set(CALL.findall(body))
                           for name, body in MACRO.findall(text)})
        else:
            defined.update({name: path for name, static, _ in own
                            if not static})
            bodies[path] = (set().union(*(CALL.findall(b) for *_, b in own)),
                            {name for name, static, _ in own if static})
    edges = {}
    for path, (names, own) in bodies.items():
        waiting, reached = sorted(names - own), set()
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += inline.get(name, ())
        for name in sorted(reached):
            if defined.get(name, path) != path:
                edges.setdefault(path, {}).setdefault(defined[name],
                                                      []).append(name)
    return edges


def reachable(edges, start):
    reached, waiting = set(), [start]
    while waiting:
        for there in edges.get(waiting.pop(), ()):
            if there not in reached:
                reached.add(there)
                waiting.append(there)
    return reached


def call_circles(edges):
    """The sets of files of which each reaches all others of its set"""
    reach, done = {path: reachable(edges, path) for path in edges}, set()
    for path in sorted(edges):
        if path in reach[path] and path not in done:
            circle = {other for other in reach[path]
                      if path in reach.get(other, ())}
            done |= circle
            yield circle


def described(edges, circle):
    lines = [f"circle of calls: {', '.join(sorted(circle))}"]
    for path in sorted(circle):
        for there, names in sorted(edges[path].items()):
            if there in circle:
                lines.append(f"    {path} calls {', '.join(names)} of {there}")
    return "\n".join(lines)


def faults_of_calls(sources, known):
    edges = calls(sources)
    found = list(call_circles(edges))
    for circle in found:
        if not any(circle <= set(row) for row in known):
            yield described(edges, circle)
    for row in known:
        if not any(circle <= set(row) for circle in found):
            yield f"no such circle any more, delete its row: {', '.join(row)}"


# ---- all checks -------------------------------------------------------------

def faults(root, known=KNOWN_CIRCLES):
    edges, sources = {}, []
    for path, text in files(root):
        includes = INCLUDE.findall(text)
        edges[included_as(path)] = [n for m, n in includes if m == '"']
        if path.startswith(CODE):
            sources.append((path, text))
            if not OF_SYSTEM.search(path):
                for name in IF_SYSTEM.findall(text):
                    yield f"{path}: asks for {name}: a file of the system's may"
        for m, n in includes:
            if not allowed(path, m, n):
                yield f"{path}: may not include {m}{n}{'>' if m == '<' else m}"
        own = path[:-2] + ".h"
        if (path.startswith(CODE) and path.endswith(".c")
                and os.path.exists(os.path.join(root, own))
                and (not includes or includes[0][1] != included_as(own))):
            yield f"{path}: its own header must be its first include"
    for circle in circles(edges):
        yield "circle: " + " -> ".join(circle)
    yield from faults_of_calls(sources, known)


def main(root):
    bad = list(faults(root))
    print("\n".join(bad) or "layers hold")
    return bool(bad)


# ---- self-test --------------------------------------------------------------

# In this order: two files that call each other; a circle of three
# files, of which one calls through an inline function and one through a macro;
# apparent calls, which stand in a comment, a string, or mean a static
# function; then a file that may ask for the system, and a file that may not.
FIXTURE = {
    "runtime/x/a.c": "int uva__a(int x,\n           int y)\n{\n"
                        "    return uva__b(x + y);\n}\n",
    "runtime/x/b.c": "int uva__b(int x)\n{\n    return uva__a(x, x);\n}\n",
    "runtime/x/c.c": "int uva__c(void)\n{\n    return uva__to_d();\n}\n",
    "runtime/x/d.c": "int uva__d(void)\n{\n    return UVA__TO_E(1);\n}\n",
    "runtime/x/to.h": "static inline int uva__to_d(void)\n{\n"
                        "    return uva__d();\n}\n"
                        "#define UVA__TO_E(x) \\\n    uva__e(x)\n",
    "runtime/x/e.c": "int uva__e(int x)\n{\n    return uva__c() + x;\n}\n",
    "runtime/x/f.c": "static int own(void)\n{\n    return 0;\n}\n\n"
                        "int uva__f(void)\n{\n    return own();\n}\n",
    "runtime/x/g.c": "int own(void);\n\nint own(void)\n{\n"
                        "    /* uva__f() */\n"
                        "    return sizeof \"uva__f()\";\n}\n",
    "runtime/x/platform_y.c": "#ifdef _WIN32\n#endif\n",
    "runtime/x/i.c": "#if defined(__linux__)\n#endif\n",
    "runtime/x/h.c": "int uva__h(void)\n{\n    return own() + uva__f();\n}\n",
}


def self_test():
    with tempfile.TemporaryDirectory() as root:
        for path, text in FIXTURE.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        two = tuple(f"runtime/x/{name}.c" for name in "ab")
        three = tuple(f"runtime/x/{name}.c" for name in "cde")
        asks = [line for line in faults(root, (two, three))
                if "asks for" in line]
        if [line.split(":")[0] for line in asks] != ["runtime/x/i.c"]:
            return f"files that ask for a system: {asks}"
        os.remove(os.path.join(root, "runtime/x/i.c"))
        found = [line.split("\n")[0] for line in faults(root, ())]
        expected = [f"circle of calls: {', '.join(row)}"
                    for row in (two, three)]
        if found != expected:
            return f"found {found}, expected {expected}"
        if list(faults(root, (two, three))):
            return "a known circle is not tolerated"
        if len(list(faults(root, (two, three, ("runtime/x/f.c",))))) != 1:
            return "a row without a circle is not reported"
    print("circles of calls are found, and files that ask for a system")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
