# SPDX-License-Identifier: Apache-2.0
"""A server of PostgreSQL, and pgbouncer in front of it, each in a separate
folder, without a port. A missing package makes the script skip."""
import glob
import os
import pwd
import shutil
import subprocess
import sys
import tempfile

IS_ROOT = os.geteuid() == 0
BOUNCER = "/usr/sbin/pgbouncer"
INI = """
[databases]
postgres = host={server} pool_mode={mode}
[pgbouncer]
unix_socket_dir = {folder}
listen_port = 6432
auth_type = trust
auth_file = {folder}/users
"""


def folder():
    """A new folder that the server may write to."""
    path = tempfile.mkdtemp(prefix="uva_pg_")
    if IS_ROOT:
        os.chown(path, pwd.getpwnam("postgres").pw_uid, -1)
    return path


def run(*command, **options):
    """Runs a program of the server, which refuses to be root."""
    return subprocess.run(command, check=True, cwd="/",
                          user="postgres" if IS_ROOT else None,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          **options)


class Cluster:
    def __init__(self, *settings):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not programs or not os.path.exists(os.environ["UVA_TEST_POSTGRESQL"]):
            print("there is no PostgreSQL, or no driver for it")
            sys.exit(77)
        self.bin = os.path.dirname(programs[-1])
        self.folder = folder()
        self.settings = f"-k {self.folder} -c listen_addresses= " + " ".join(
            f"-c {setting}" for setting in settings)
        run(f"{self.bin}/initdb", "-D", f"{self.folder}/db", "-A", "trust",
            "-U", "postgres", "--no-sync")
        self.start()

    def control(self, *command):
        run(f"{self.bin}/pg_ctl", "-D", f"{self.folder}/db", "-w", *command)

    def start(self):
        self.control("-l", f"{self.folder}/log", "-o", self.settings, "start")

    def stop(self):
        self.control("-m", "immediate", "stop")

    def close(self):
        if os.path.exists(f"{self.folder}/db/postmaster.pid"):
            self.stop()
        shutil.rmtree(self.folder)

    def uri(self, user, rest=""):
        return f"postgresql://{user}@/postgres?host={self.folder}{rest}"

    def ask(self, *statements):
        """Executes them as a superuser. Returns the lines of their rows."""
        result = subprocess.run(
            [f"{self.bin}/psql", "-h", self.folder, "-U", "postgres", "-qAt",
             *(f"-c{statement}" for statement in statements)],
            check=True, capture_output=True, text=True)
        return result.stdout.splitlines()


class Bouncer:
    """pgbouncer in front of a cluster; its settings as lines."""

    def __init__(self, cluster, mode, *settings):
        self.folder = folder()
        ini = f"{self.folder}/bouncer.ini"
        with open(ini, "w", encoding="utf-8") as file:
            file.write(INI.format(server=cluster.folder, mode=mode,
                                  folder=self.folder) + "\n".join(settings))
        with open(f"{self.folder}/users", "w", encoding="utf-8") as file:
            file.write('"reader" ""\n')
        self.process = subprocess.Popen(
            [BOUNCER, ini], user="postgres" if IS_ROOT else None, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        for line in self.process.stderr:
            if "process up" in line:
                break

    def uri(self, user, rest=""):
        return (f"postgresql://{user}@/postgres?host={self.folder}&port=6432"
                f"{rest}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()
        shutil.rmtree(self.folder)
