# SPDX-License-Identifier: Apache-2.0
"""A server of PostgreSQL in a separate folder, without a port, which tests may
restart, kill and freeze."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile


class Absent(Exception):
    """The server is not installed."""


class Server:
    """The server runs inside of a with statement. `settings` go into
    postgresql.conf; the data need not survive the machine."""

    def __init__(self, **settings):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not programs:
            raise Absent("the server of PostgreSQL")
        self._programs = os.path.dirname(programs[-1])
        self._settings = {"listen_addresses": "", "fsync": "off", **settings}
        self.folder = ""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="uva_pg_")
        if os.geteuid() == 0:
            os.chown(self.folder, pwd.getpwnam("postgres").pw_uid, -1)
        try:
            self._run("initdb", "-D", f"{self.folder}/db", "-A", "trust", "-U",
                      "postgres", "--no-sync")
            self.start()
        except BaseException:
            shutil.rmtree(self.folder)
            raise
        return self

    def __exit__(self, *exc_info):
        try:
            if os.path.exists(self._pid_file):
                self.thaw()
                self.stop("immediate")
        finally:
            shutil.rmtree(self.folder)

    @property
    def uri(self):
        return f"postgresql://postgres@/postgres?host={self.folder}"

    @property
    def _pid_file(self):
        return f"{self.folder}/db/postmaster.pid"

    def start(self):
        options = " ".join(f"-c {name}={value}" for name, value
                           in {"unix_socket_directories": self.folder,
                               **self._settings}.items())
        self._control("-l", f"{self.folder}/log", "-o", options, "start")

    def stop(self, mode):
        """`mode`: "smart", "fast" or "immediate"."""
        self._control("-m", mode, "stop")

    def query(self, sql):
        """Runs SQL by a program; gives the text of its result."""
        return self._run("psql", "-h", self.folder, "-U", "postgres", "-Atqc", sql)

    def freeze(self):
        """No process of the server does anything until thaw()."""
        self._signal(signal.SIGSTOP)

    def thaw(self):
        self._signal(signal.SIGCONT)

    def _control(self, *arguments):
        self._run("pg_ctl", "-D", f"{self.folder}/db", "-w", *arguments)

    def _run(self, program, *arguments):
        """The server refuses to be root. A library that a sanitizer loads
        first into Python is not for it. pg_ctl leaves a server that would keep
        a pipe open."""
        environment = {name: value for name, value in os.environ.items()
                       if name != "LD_PRELOAD"}
        user = "postgres" if os.geteuid() == 0 else None
        wanted = subprocess.PIPE if program == "psql" else subprocess.DEVNULL
        return subprocess.run(
            [f"{self._programs}/{program}", *arguments], check=True, user=user,
            cwd="/", stdin=subprocess.DEVNULL, stdout=wanted, text=True,
            env=environment).stdout

    def _signal(self, number):
        with open(self._pid_file, encoding="ascii") as file:
            first = int(file.readline())
        with open(f"/proc/{first}/task/{first}/children", encoding="ascii") as file:
            children = list(map(int, file.read().split()))
        for process in first, *children:
            try:
                os.kill(process, number)
            except ProcessLookupError: # it has ended meanwhile
                pass
