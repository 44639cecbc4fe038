#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`uvarrow serve` with PostgreSQL: no client can write, or sees another one's
state; users that may do more than read are refused; options of the URI are
kept.

Environment variables give the paths, as for test_query_server.py; besides,
UVA_TEST_POSTGRESQL the driver.
"""
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from urllib.parse import quote

sys.dont_write_bytecode = True
from postgresql import BOUNCER, Bouncer, Cluster  # noqa: E402
from server import PATIENCE, Server, main  # noqa: E402

# Each of these lets the next statement write, if both are in one session that
# is made read-only by a setting of it alone; or writes by itself.
WAYS_TO_WRITE = (
    "select set_config('default_transaction_read_only', 'off', false)",
    "select set_config('transaction_read_only', 'off', false)",
    "set default_transaction_read_only = off",
    "set session characteristics as transaction read write",
    "begin read write",
    "start transaction read write",
    "set transaction read write",
    "commit",
    "rollback",
    "abort and chain",
    "commit and chain",
    "reset all",
    "reset default_transaction_read_only",
    "discard all",
    "commit; insert into kept values (2)",
    "end; begin read write; insert into kept values (2)",
    "select 1; set transaction read write; insert into kept values (2)",
    "insert into kept values (2)",
    "update kept set i = 2",
    "delete from kept",
    "truncate kept",
    "drop table kept",
    "alter table kept add column j int",
    "create table kept2 (i int)",
    "select 2 as i into kept2",
    "with a as (insert into kept values (2) returning i) select i from a",
    "explain analyze insert into kept values (2)",
    "do $$ begin commit; insert into kept values (2); end $$",
    "do $$ begin set transaction read write; "
    "perform setval('kept_id', 99); end $$",
    "select nextval('kept_id')",
    "select setval('kept_id', 99)",
    "select writes()",
    "call writes_more()",
    "select lo_from_bytea(4711, 'x')",
    "select query_to_xml('insert into kept values (2) returning i', true, "
    "true, '')",
    "copy kept from program 'echo 2'",
    "copy kept to '/tmp/uva_kept'",
    "copy (select 1) to program 'true'",
    "grant all on kept to public",
    "comment on table kept is 'x'",
    "vacuum kept",
    "alter role reader set default_transaction_read_only = off",
    "prepare transaction 'x'",
)
# The state that a client leaves, and another one's question then: the answer
# is a fresh session's.
WAYS_TO_LEAVE = (
    ("begin isolation level repeatable read", "show transaction_isolation",
     "read committed"),
    ("set transaction isolation level serializable",
     "show transaction_isolation", "read committed"),
    ("set search_path = nowhere", "show search_path",
     '"""$user"", public"'),
    ("select set_config('search_path', 'nowhere', false)", "show search_path",
     '"""$user"", public"'),
    ("set timezone = 'Asia/Tokyo'", "show timezone", "Etc/UTC"),
    ("set statement_timeout = 1", "show statement_timeout", "0"),
    ("set bytea_output = 'escape'", "show bytea_output", "hex"),
    ("set role other", "select current_user as a", "reader"),
    ("select set_config('role', 'other', false)", "select current_user as a",
     "reader"),
    ("set my.secret = 'x'",
     "select coalesce(current_setting('my.secret', true), '') as a", '""'),
    ("declare c cursor with hold for select 1",
     "select count(*) as a from pg_cursors where name = 'c'", "0"),
    ("listen x", "select count(*) as a from pg_listening_channels()", "0"),
    ("create temp table kept as select 666 as i", "select i from kept", "1"),
    ("create temp view kept as select 666 as i", "select i from kept", "1"),
    ("select set_config('default_transaction_read_only', 'off', false)",
     "show default_transaction_read_only", "on"),
    ("savepoint x", "select i from kept", "1"),
    ("lock table kept in access share mode",
     "select count(*) as a from pg_locks where relation = 'kept'::regclass "
     "and pid <> pg_backend_pid()", "0"),
    ("select pg_advisory_xact_lock(1)",
     "select count(*) as a from pg_locks where locktype = 'advisory'", "0"),
)

# Its first word passes.
INSERT = ("/query?sql=with+a+as+(insert+into+kept+values+(2)+returning+i)"
          "+select+i+from+a")

cluster = None


def setUpModule():
    global cluster
    cluster = Cluster("max_prepared_transactions=2", "timezone=Etc/UTC")
    unittest.addModuleCleanup(cluster.close)
    cluster.ask(
        "create role reader login", "create role other",
        "grant other to reader",
        "grant create on schema public to reader",
        "set role reader", "create table kept as select 1 as i",
        "create sequence kept_id",
        "create function writes() returns void language sql as "
        "'insert into kept values (2)'",
        "create procedure writes_more() language plpgsql as "
        "'begin commit; insert into kept values (2); commit; end'")


def serve(uri, *options, driver=None, **more):
    return Server("--driver", driver or os.environ["UVA_TEST_POSTGRESQL"],
                  *options, path=uri, name="postgresql", **more)


def query(sql, format="csv"):
    return f"/query?format={format}&sql={quote(sql)}"


def resident(server):
    """The bytes of memory that the process has."""
    with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class ReadOnly(unittest.TestCase):
    def test_no_way_to_write_is_left(self):
        with serve(cluster.uri("reader"), "--max-queries", "1") as server:
            for way in WAYS_TO_WRITE:
                server.ask(query(way))
                answer = server.ask(INSERT)
                self.assertGreaterEqual(answer.status, 400, way)
                self.assertIn("read-only transaction", answer.message(), way)
                self.assertEqual(
                    cluster.ask("select i from kept",
                                "select last_value from kept_id",
                                "select count(*) from pg_class where relname "
                                "like 'kept2%'",
                                "select count(*) from pg_largeobject",
                                "select count(*) from pg_prepared_xacts"),
                    ["1", "1", "0", "0", "0"], way)

    def test_no_client_meets_what_another_one_has_left(self):
        with serve(cluster.uri("reader"), "--max-queries", "1") as server:
            for way, sql, expected in WAYS_TO_LEAVE:
                server.ask(query(way))
                answer = server.ask(query(sql))
                self.assertEqual(answer.body.decode().splitlines()[1:],
                                 [expected], (way, answer.body))

    def test_rows_are_those_of_now(self):
        with serve(cluster.uri("reader"), "--max-queries", "1") as server:
            sql = query("select obj_description('kept'::regclass) as a")
            for way in ("begin isolation level repeatable read", "select 1",
                        "begin", "set session characteristics as transaction "
                        "isolation level serializable"):
                server.ask(query(way))
                server.ask(sql)
                text = f"after {way}"
                cluster.ask(f"comment on table kept is '{text}'")
                self.assertEqual(server.ask(sql).body.decode(), f"a\n{text}\n")

    def test_tables_and_parameters(self):
        with serve(cluster.uri("reader")) as server:
            answer = server.ask("/tables?format=csv&table=kept")
            self.assertIn(b"kept", answer.body)
            answer = server.ask(query("select $1::int8 as a")
                                + "&parameters=[7]")
            self.assertEqual(answer.body, b"a\n7\n")

    def test_a_writable_database(self):
        with serve(cluster.uri("postgres"), "--writable") as server:
            create = "create table written as select 1 as a"
            self.assertEqual(server.ask(query(create)).status, 403)
            self.assertEqual(server.post(create).status, 200)
            for write in ("insert into written values (2)",
                          "with x as (insert into written values (2) "
                          "returning a) select a from x",
                          "select * into written2 from written",
                          "explain analyze delete from written"):
                self.assertEqual(server.ask(query(write)).status, 403, write)
            answer = server.ask(query("table written"))
            self.assertEqual(answer.body, b"a\n1\n")
            self.assertEqual(server.post("drop table written").status, 200)
            self.assertEqual(server.ask(query("table written")).status, 400)


    def test_a_database_that_is_not_there(self):
        for text, uri in (("does not exist", cluster.uri("reader").replace(
                              "/postgres", "/missing")),
                          ("does not exist", cluster.uri("nobody"))):
            for options in ((), ("--writable",)):
                with self.assertRaisesRegex(RuntimeError, text):
                    serve(uri, *options)


class Rights(unittest.TestCase):
    def refused(self, text, uri, driver=None):
        result = subprocess.run(
            [os.environ["UVA_TEST_TOOL"], "serve", "--quiet", "--listen",
             "127.0.0.1:0", "--driver",
             driver or os.environ["UVA_TEST_POSTGRESQL"], uri],
            capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn(text, result.stderr)
        self.assertIn("--trust-user", result.stderr)
        self.assertNotIn("listening", result.stderr)

    def test_a_superuser_must_be_trusted(self):
        self.refused("it is a superuser", cluster.uri("postgres"))
        self.refused("it is a superuser", cluster.uri(
            "postgres", "&options=-c%20role%3Dreader"))
        with serve(cluster.uri("postgres"), "--trust-user") as server:
            answer = server.ask(query("select current_user as a"))
            self.assertEqual(answer.body, b"a\npostgres\n")
            server.ask(query("set transaction read write"))
            answer = server.ask(INSERT)
            self.assertIn("read-only transaction", answer.message())

    def test_so_must_who_may_become_one(self):
        cluster.ask("create role indirect login noinherit",
                    "grant postgres to indirect")
        self.refused("may become one", cluster.uri("indirect"))

    def test_so_must_who_reaches_beyond_the_database(self):
        cluster.ask("create role reaches login",
                    "create role replicates login replication")
        self.refused("it may replicate", cluster.uri("replicates"))
        for role in ("pg_read_server_files", "pg_write_server_files",
                     "pg_execute_server_program", "pg_signal_backend"):
            cluster.ask(f"grant {role} to reaches")
            self.refused(f"it has the role {role}", cluster.uri("reaches"))
            cluster.ask(f"revoke {role} from reaches")
        for function in ("lo_export(oid, text)", "pg_read_file(text)"):
            cluster.ask(f"grant execute on function {function} to reaches")
            self.refused("it may call " + function.split("(", maxsplit=1)[0],
                         cluster.uri("reaches"))
            cluster.ask(f"revoke execute on function {function} from reaches")
        with serve(cluster.uri("reaches")) as server:
            self.assertEqual(server.ask(query("select 1 as a")).body, b"a\n1\n")

    def test_so_must_who_may_send_messages(self):
        """They leave a read-only transaction, and reach the decoding of the
        log."""
        decoded = Cluster("wal_level=logical")
        self.addCleanup(decoded.close)
        decoded.ask("create role reader login")
        self.refused("it may call pg_logical_emit_message;",
                     decoded.uri("reader"))
        decoded.ask(
            "do $$ declare f regprocedure; begin for f in select oid from "
            "pg_proc where proname = 'pg_logical_emit_message' loop execute "
            "'revoke execute on function ' || f || ' from public'; end loop; "
            "end $$")
        with serve(decoded.uri("reader")) as server:
            self.assertEqual(server.ask(query("select 1 as a")).body, b"a\n1\n")

    def test_a_manifest_may_have_any_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "warehouse.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write('manifest_version = 1\n[Driver]\nshared = '
                           f'"{os.environ["UVA_TEST_POSTGRESQL"]}"\n')
            self.refused("it is a superuser", cluster.uri("postgres"), path)
            with serve(cluster.uri("reader"), driver=path) as server:
                self.assertIn("read-only transaction",
                              server.ask(INSERT).message())
                self.assertEqual(server.ask(query("table kept")).body,
                                 b"i\n1\n")

    def test_so_must_who_may_open_connections(self):
        try:
            cluster.ask("create extension dblink")
        except subprocess.CalledProcessError:
            self.skipTest("no dblink")
        self.addCleanup(cluster.ask, "drop extension dblink")
        self.refused("it may call dblink,", cluster.uri("reader"))


class Uri(unittest.TestCase):
    SETTINGS = ("select current_setting('statement_timeout') as a, "
                "current_setting('search_path') as b, "
                "current_setting('default_transaction_read_only') as c")

    def test_its_options_are_kept(self):
        options = "-c statement_timeout=500 -c search_path=mine"
        for uri in (cluster.uri("reader", "&options=" + quote(options)),
                    f"host={cluster.folder} user=reader dbname=postgres "
                    f"options='{options}'"):
            with serve(uri) as server:
                self.assertEqual(server.post(self.SETTINGS).body,
                                 b"a,b,c\n500ms,mine,on\n")
            with serve(uri, "--writable") as server:
                self.assertEqual(server.post(self.SETTINGS).body,
                                 b"a,b,c\n500ms,mine,off\n")

    def test_one_without_any_may_end_as_if_it_had_some(self):
        with serve(f"postgresql://reader@{quote(cluster.folder, '')}/postgres?"
                   ) as server:
            self.assertEqual(server.ask(query("select 1 as a")).body, b"a\n1\n")

    def test_behind_a_pooler_it_only_reads(self):
        if not os.path.exists(BOUNCER):
            self.skipTest("no pgbouncer")
        for mode in ("session", "transaction"):
            for settings in ((), ("ignore_startup_parameters = options",)):
                with Bouncer(cluster, mode, *settings) as bouncer:
                    with serve(bouncer.uri("reader")) as server:
                        for way in WAYS_TO_WRITE[:12]:
                            server.ask(query(way))
                            answer = server.ask(INSERT)
                            self.assertIn("read-only transaction",
                                          answer.message())
                        self.assertEqual(
                            server.ask(query("select i from kept")).body,
                            b"i\n1\n")

    def test_a_pooler_that_refuses_its_options_is_reported(self):
        if not os.path.exists(BOUNCER):
            self.skipTest("no pgbouncer")
        with Bouncer(cluster, "session") as bouncer:
            uri = bouncer.uri("reader", "&options=-c%20statement_timeout%3D500")
            with serve(uri) as server:
                answer = server.ask(query("select 1"))
                self.assertEqual(answer.status, 503)
                self.assertIn("unsupported startup parameter", answer.message())
            self.assertIn("cannot be asked so far", "".join(server.errors))
            self.assertIn("unsupported startup parameter",
                          "".join(server.errors))


class Statuses(unittest.TestCase):
    def test_the_class_of_the_sqlstate_decides(self):
        cluster.ask("create function fails(code text) returns void language "
                    "plpgsql as 'begin raise exception using errcode = code; "
                    "end'")
        with serve(cluster.uri("reader", "&options=-c%20statement_timeout%3D50"
                               "%20-c%20lock_timeout%3D50")) as server:
            for status, sql in (
                    (400, "select 1 / 0"), (400, "select 'x'::int"),
                    (400, "selec"), (400, "select * from missing"),
                    (400, "select * from kept where i = 'x'"),
                    (403, "create table kept2 (i int)"),
                    (403, "with a as (delete from kept returning i) "
                     "select i from a"),
                    (403, "select * from pg_authid"),
                    (504, "select pg_sleep(1000)"),
                    (400, "select fails('P0001')"), (400, "select fails('54001')"),
                    (403, "select fails('42501')"), (500, "select fails('53100')"),
                    (500, "select fails('XX001')"), (503, "select fails('40001')"),
                    (503, "select fails('40P01')"), (504, "select fails('55P03')"),
                    (503, "select fails('57P03')"), (501, "select fails('0A000')"),
                    (503, "select pg_terminate_backend(pg_backend_pid())")):
                answer = server.ask(query(sql))
                self.assertEqual(answer.status, status, (sql, answer.body))
                self.assertEqual("retry-after" in answer.headers,
                                 status == 503, sql)

    def test_no_connection_is_for_a_while(self):
        cluster.ask("create role alone login connection limit 0")
        with serve(cluster.uri("alone")) as server:
            answer = server.ask(query("select 1"))
            self.assertEqual(answer.status, 503, answer.body)
            self.assertIn("too many connections", answer.message())


class Stuck(unittest.TestCase):
    def test_a_server_without_a_connection_is_not_well(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            with serve(f"postgresql://reader@127.0.0.1:{port}/postgres",
                       "--max-queries", "1", "--wait-ms", "200") as server:
                while (answer := server.ask("/health")).status == 200:
                    stuck = server.stats()["database"]["stuck"]
                    self.assertLess(stuck, 2)
                    answer = server.ask(query("select 1"))
                    self.assertEqual(answer.status, 503)
                    self.assertEqual(answer.headers["retry-after"], "1")
                self.assertEqual(answer.status, 503)
                self.assertEqual(answer.headers["retry-after"], "1")
                self.assertEqual(server.stats()["database"]["stuck"],
                                 server.stats()["database"]["max"])
                silent.close()  # resets the waiting ones
                server.wait(lambda _: server.ask("/health").status == 200)

    def test_the_pool_is_in_the_statistics(self):
        with serve(cluster.uri("reader"), "--max-queries", "3") as server:
            server.ask(query("select 1"))
            stats = server.wait(lambda stats: stats["database"]["idle"] > 0
                                and stats["database"]["used"] == 0)
            self.assertEqual(stats["database"]["stuck"], 0)
            self.assertEqual(stats["database"]["max"], 6)
            self.assertEqual(stats["database"]["waiting"], 0)
            self.assertEqual(stats["database"]["queries"], 3)
            # the driver, and the rights, were asked before


class Memory(unittest.TestCase):
    READERS = 8
    BATCH = 256 << 10  # about the bytes of one, as the driver is asked
    MANY = ("select generate_series(1, 100000000) as i, repeat('x', 100) as t")

    def stand_still(self, server):
        """Clients that do not read; returns the statistics once their queries
        stand still."""
        clients = [server.client() for _ in range(self.READERS)]
        for client in clients:
            self.addCleanup(client.socket.close)
            client.request(query(self.MANY))
        stats = server.wait(lambda stats: [
            each["paused"] for each in stats["queries"]["running"]
        ] == [True] * self.READERS)
        for client in clients:
            client.socket.close()
        return stats

    def test_readers_that_stand_still_keep_its_limit(self):
        """Except for the growth of a batch of each: a requested batch counts
        as large as the largest before it. Without a limit they hold 75 MB."""
        limit = 16 << 20
        with serve(cluster.uri("reader"), "--memory-bytes", str(limit),
                   "--batch-bytes", str(self.BATCH)) as server:
            held = self.stand_still(server)["runtime"]["memory_held"]
            self.assertGreater(held, 0)
            self.assertLessEqual(held, limit + self.READERS * self.BATCH)

    def test_the_system_gets_it_back(self):
        if os.environ["UVA_TEST_SANITIZE"]:
            self.skipTest("a sanitizer keeps what was freed")
        with serve(cluster.uri("reader")) as server:
            server.ask(query("select 1"))
            before = resident(server)
            self.stand_still(server)
            server.wait(lambda _: resident(server) < before + (30 << 20))


class Later(unittest.TestCase):
    def test_a_database_may_start_after_the_server(self):
        cluster.stop()
        try:
            with serve(cluster.uri("reader")) as reads, \
                 serve(cluster.uri("postgres")) as may_write:
                for server in (reads, may_write):
                    answer = server.ask(query("select 1 as a"))
                    self.assertEqual(answer.status, 503)
                    self.assertEqual(answer.headers["retry-after"], "1")
                    self.assertIn("Failed to connect", answer.message())
                    self.assertEqual(server.ask("/health").status, 200)
                cluster.start()
                answer = reads.ask(query("select 1 as a"))
                self.assertEqual(answer.body, b"a\n1\n")
                for path in (query("select 1 as a"), "/tables"):
                    answer = may_write.ask(path)
                    self.assertEqual(answer.status, 403)
                    self.assertIn("it is a superuser", answer.message())
        finally:
            if not os.path.exists(f"{cluster.folder}/db/postmaster.pid"):
                cluster.start()

    def test_a_client_may_leave_before_the_rights_are_known(self):
        with serve(cluster.uri("reader")) as server:
            with server.client() as client:
                client.request(query("select pg_sleep(1000)"))
                server.wait(lambda stats: len(stats["queries"]["running"]) == 1)
            server.wait(lambda stats: not stats["queries"]["running"]
                        and stats["runtime"]["streams"] == 0)


if __name__ == "__main__":
    main()
