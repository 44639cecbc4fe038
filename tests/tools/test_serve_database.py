#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `uvarrow serve` tells of its database: its name at /database, and its
tables at /tables, with names of any kind, many of them, or none. Environment
variables as for test_serve_query.py.
"""
import json
import os
import sqlite3
import sys
import unittest
import urllib.request
from urllib.parse import quote

sys.dont_write_bytecode = True
from server import Server, folder, main  # noqa: E402

TOKEN = "0123456789abcdef0123456789abcdef"
HOSTILE = ('</script><script>broken=1</script>', '"; DROP TABLE x; --',
           "it's", "two\nlines\r\n\tand\x01\x7f", "a%b_c\\d", "tëxt 😀", "",
           "&lt;", "\u202eright to left", " ", "x" * 1000)
ROWS = "application/x-ndjson"


def made(name, statements):
    """Makes a database; returns its path."""
    path = os.path.join(folder(), f"{name}-{os.getpid()}.db")
    if os.path.exists(path):
        os.remove(path)
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in "BEGIN", *statements, "COMMIT":
        connection.execute(statement)
    connection.close()
    return path


class Made(Server):
    """A server of a database that is made of statements."""

    def __init__(self, name, statements):
        super().__init__(path=made(name, statements))

    def stop(self):
        code = super().stop()
        if os.path.exists(self.path):
            os.remove(self.path)
        return code


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def tables(server, table=None):
    """Returns the tables, by name, each with the names of its columns."""
    path = "/tables" + ("" if table is None else "?table=" + quote(table))
    found = {}
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{path}",
                                     headers={"Accept": ROWS})
    with urllib.request.urlopen(request) as answer:
        body = answer.read()
    for line in body.splitlines():
        for schema in json.loads(line)["catalog_db_schemas"]:
            for entry in schema["db_schema_tables"]:
                found[entry["table_name"]] = [
                    (column["column_name"], column["xdbc_type_name"])
                    for column in entry["table_columns"] or []]
    return found


class Database(unittest.TestCase):
    def test_it_has_a_name(self):
        with Server(name="name & <b>") as server:
            answer = server.ask("/database")
            self.assertEqual(answer.headers["content-type"],
                             "application/json")
            self.assertEqual(answer.headers["cache-control"], "no-store")
            about = answer.json()
            self.assertEqual(about["name"], os.path.basename(server.path))
            self.assertEqual((about["system"], about["writable"]),
                             ("SQLite", False))
            self.assertEqual([entry["name"] for entry in about["formats"]],
                             ["arrow", "csv", "json", "json-array"])
            for entry in about["formats"]:
                answer = server.ask("/query?sql=SELECT+1&format="
                                    + entry["name"])
                self.assertEqual(answer.headers["content-type"],
                                 entry["type"])
            self.assertEqual(server.ask("/database", method="POST",
                                        body=b"").status, 405)
            self.assertEqual(server.ask("/database", method="HEAD").status, 200)

    def test_it_may_be_changed_or_be_in_memory(self):
        with Server("--writable", name="writable") as server:
            self.assertTrue(server.ask("/database").json()["writable"])
        with Server(path=":memory:") as server:
            self.assertEqual(server.ask("/database").json()["name"], "")

    def test_names_without_utf8(self):
        path = os.fsencode(made("bytes", ["CREATE TABLE a (b)"]))
        other = path.replace(b"bytes", b"\xff\xfe")
        os.rename(path, other)
        with Server(path=os.fsdecode(other)) as server:
            self.assertEqual(server.ask("/database").json()["name"], "")
        os.remove(other)

    def test_a_token_is_needed(self):
        path = os.path.join(folder(), f"database-token-{os.getpid()}")
        with open(path, "w", encoding="ascii") as file:
            file.write(TOKEN)
        with Server("--token-file", path, name="database-token") as server:
            for url in "/database", "/tables":
                self.assertEqual(server.ask(url).status, 401)
                self.assertEqual(
                    server.ask(url, Authorization=f"Bearer {TOKEN}").status, 200)
        os.remove(path)


class Tables(unittest.TestCase):
    def test_hostile_names(self):
        with Made("hostile", [
                f"CREATE TABLE {quoted(name)} ({quoted(name)} INT, b "
                f"{quoted('<i>')})" for name in HOSTILE]) as server:
            self.assertEqual(set(tables(server)), set(HOSTILE))
            for name in HOSTILE:
                found = tables(server, name.replace("%", "_")
                               .replace("\\", "_"))
                self.assertEqual(found[name], [(name, "INT"), ("b", "<i>")])
            self.assertEqual(server.ask("/tables?table=a%00b").status, 400)
            self.assertNotIn("' OR 1 --", tables(server, "' OR 1 --"))

    def test_100000_columns(self):
        columns = ", ".join(f"c{i} INT" for i in range(2000))
        with Made("columns", [f"CREATE TABLE t{i} ({columns})"
                              for i in range(50)]) as server:
            found = tables(server, "%")
            self.assertEqual(sum(map(len, found.values())), 100000)
            self.assertEqual(len(tables(server, "t7")["t7"]), 2000)

    def test_many_tables(self):
        with Made("tables", [f"CREATE TABLE t{i} (a)"
                             for i in range(5000)]) as server:
            self.assertEqual(len(tables(server)), 5000)

    def test_no_tables(self):
        with Made("empty", []) as server:
            self.assertEqual(tables(server), {})

    def test_a_driver_without_a_catalog(self):
        driver = os.path.join(os.environ["UVA_TEST_BUILD"], "tests",
                              "libadbc_driver_nocatalog.so")
        with Server("--writable", name="nocatalog", driver=driver) as server:
            answer = server.ask("/tables", Accept=ROWS)
            self.assertEqual(answer.status, 501, answer.body)
            self.assertIn("message", answer.json()["error"])
            about = server.ask("/database").json()
            self.assertEqual((about["system"], about["name"]), (None, ""))
            self.assertEqual(server.post("SELECT 7").body, b"7\n7\n")


if __name__ == "__main__":
    main()
