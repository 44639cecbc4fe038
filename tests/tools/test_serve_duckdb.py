#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` with DuckDB: no client can write, change the results of
others, or end the process.

Environment variables give the paths, as for test_query_server.py; besides,
UVA_TEST_DUCKDB the driver, and UVA_TEST_LIBPYTHON the library that it needs.
"""
import os
import sys
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import Server, folder, main  # noqa: E402

try:
    import duckdb
except ImportError:
    duckdb = None

# A file that no query may make.
OUT = "/tmp/uva_duckdb_out"
# A client's attempts to write or to leave state.
WAYS = (
    "call enable_logging(storage='file', storage_path='/nonexistent')",
    "from enable_logging(storage='file', storage_path='/nonexistent')",
    "explain analyze call enable_logging(storage='file', "
    "storage_path='/nonexistent')",
    "select 1; call enable_logging('QueryLog')",
    "set threads = 3000",
    "set global threads = 3000",
    "pragma threads = 3000",
    "reset threads",
    "explain analyze set threads = 3000",
    "set lock_configuration = false",
    "set enable_external_access = true",
    "pragma enable_profiling",
    "from enable_profiling()",
    "set memory_limit = '1MB'",
    "insert into flights values (666)",
    "with a as (select 666) insert into flights from a",
    "explain analyze insert into flights values (666)",
    "delete from flights",
    "drop table flights",
    "create table t as select 666 as i",
    "create temp table flights as select 666 as i",
    "create temp view flights as select 666 as i",
    "explain analyze create temp view flights as select 666 as i",
    "explain analyze (create temp view flights as select 666 as i",
    "select 1; create temp view flights as select 666 as i",
    "select 1; create temp macro lower(x) as 'evil'",
    "create temp macro lower(x) as 'evil'",
    "create macro lower(x) as 'evil'",
    "begin",
    "begin transaction read only",
    "select 1; begin; select error('x')",
    "prepare lower as select 666",
    "set variable i = 666",
    "set schema = 'information_schema'",
    "use memory",
    "attach ':memory:' as flights2",
    f"attach '{OUT}' as flights2",
    "detach db",
    "select 1; attach ':memory:' as x; use x; detach db",
    f"copy flights to '{OUT}'",
    f"export database '{OUT}'",
    f"explain analyze copy flights to '{OUT}'",
    "select * from read_csv('/etc/passwd')",
    "from read_text('/etc/passwd')",
    "from glob('/etc/*')",
    "from '/etc/passwd'",
    "install json",
    "create secret s (type http)",
    "checkpoint",
    "explain analyze checkpoint",
    "from query('select 1; drop table flights')",
)
ASK = "/query?format=csv&sql="
LOOK = ASK + quote(
    "select (select count(*) from flights) as n, (select max(i) from flights) "
    "as i, lower('ABC') as s, current_setting('threads') < 100 as t, "
    "getvariable('i') as v, (select count(*) from duckdb_databases() where not "
    "internal) as d, current_schema() as c, "
    "current_setting('enable_external_access') as e")


def serve(path, *options):
    return Server("--driver", os.environ["UVA_TEST_DUCKDB"], "--entrypoint",
                  "duckdb_adbc_init", *options, path=path, name="duckdb",
                  env={"LD_PRELOAD": os.environ["UVA_TEST_LIBPYTHON"]})


def setUpModule():
    if duckdb is None or os.environ["UVA_TEST_SANITIZE"]:
        raise unittest.SkipTest("no DuckDB, or it cannot be loaded here")


class DuckDB(unittest.TestCase):
    def setUp(self):
        self.path = os.path.join(folder(), f"db-{os.getpid()}.duckdb")
        self.addCleanup(os.remove, self.path)
        with duckdb.connect(self.path) as database:
            database.execute("create table flights as select range as i "
                             "from range(10)")

    def test_no_client_changes_anything(self):
        with serve(self.path, "--max-queries", "1") as server:
            before = server.ask(LOOK)
            self.assertEqual(before.body.decode().splitlines()[1],
                             "10,9,abc,true,,1,main,false")
            for way in WAYS:
                server.ask(ASK + quote(way))
                self.assertEqual(server.ask(LOOK).body, before.body, way)
                self.assertFalse(os.path.exists(OUT), way)

    def test_a_writable_database_has_a_locked_configuration(self):
        with serve(self.path, "--writable", "--max-queries", "1") as server:
            for way in WAYS[:7]:
                answer = server.post(way)
                self.assertIn("Cannot change configuration option",
                              answer.message(), way)
            answer = server.ask(ASK + quote("select 1 as a"))
            self.assertEqual(answer.body, b"a\n1\n")
        with serve(self.path, "--writable", "--option",
                   "lock_configuration=false", "--option", "threads=3"
                   ) as server:
            threads = ASK + quote("select current_setting('threads') as a")
            self.assertEqual(server.ask(threads).body, b"a\n3\n")
            server.post("set global threads = 2")
            self.assertEqual(server.ask(threads).body, b"a\n2\n")

    def test_a_writable_database_is_changed_by_post_alone(self):
        with serve(self.path, "--writable") as server:
            self.assertEqual(server.post("create sequence s").status, 200)
            for write in ("insert into flights values (666)",
                          "with a as (select 666) insert into flights from a",
                          "explain analyze with a as (select 666) "
                          "insert into flights from a",
                          "with a as (select 1) delete from flights",
                          "select nextval('s')", "checkpoint"):
                answer = server.ask(ASK + quote(write))
                self.assertEqual(answer.status, 403, (write, answer.body))
                self.assertIn("needs POST", answer.message())
            count = ASK + quote("select count(*) as n from flights")
            self.assertEqual(server.ask(count).body, b"n\n10\n")
            self.assertEqual(
                server.post("insert into flights values (666)").status, 200)
            self.assertEqual(server.ask(count).body, b"n\n11\n")

    def test_a_driver_that_is_not_what_its_name_states_is_refused(self):
        named = os.path.join(folder(), f"libsqlite-{os.getpid()}.so")
        self.addCleanup(os.remove, named)
        os.symlink(os.environ["UVA_TEST_DUCKDB"], named)
        with self.assertRaisesRegex(RuntimeError, "not that of the database"):
            Server("--entrypoint", "duckdb_adbc_init", own=False, name="other",
                   env={"LD_PRELOAD": os.environ["UVA_TEST_LIBPYTHON"]},
                   driver=named)

    def test_a_file_that_was_replaced_is_opened_anew(self):
        other = self.path + ".new"
        with duckdb.connect(other) as database:
            database.execute("create table flights as select 7 as i")
        look = ASK + quote("select count(*) as n from flights")
        with serve(self.path) as server:
            self.assertEqual(server.ask(look).body, b"n\n10\n")
            os.replace(other, self.path)
            server.wait(lambda _: server.ask(look).body == b"n\n1\n")

    def test_the_type_of_an_error_decides(self):
        with serve(self.path, "--option", "memory_limit=50MB", "--option",
                   "temp_directory=") as server:
            for status, sql, kind in (
                    (400, "select selec from", None), (400, "selec 1", None),
                    (400, "select * from missing", None),
                    (400, "select missing from flights", None),
                    (400, "select 'a'::int", "Conversion"),
                    (400, "select error('x')", "InvalidInput"),
                    (403, "select * from read_csv('/etc/passwd')", None),
                    (403, "with a as (select 1) insert into flights from a",
                     "InvalidInput"),
                    (403, "from enable_logging()", None),
                    (500, "select range x, repeat('x', 50) || range s from "
                     "range(20000000) order by hash(range)", "OutOfMemory")):
                answer = server.ask(ASK + quote(sql))
                self.assertEqual(answer.status, status, (sql, answer.body))
                self.assertEqual(answer.json()["error"].get("error_type"), kind)

    def test_what_only_reads_is_answered(self):
        with serve(self.path) as server:
            for sql in ("from flights", "table flights", "show tables",
                        "describe flights", "summarize flights",
                        "pivot flights on i % 2 using count(*)",
                        "explain select 1", "explain analyze from flights",
                        "values (1)", "select 1;", "from range(2)"):
                answer = server.ask(ASK + quote(sql))
                self.assertEqual(answer.status, 200, (sql, answer.body))


if __name__ == "__main__":
    main()
