# SPDX-License-Identifier: Apache-2.0
"""What is read from the text of a statement: its parameters with names, and
whether it has rows."""
import pytest

from uvarrow._named import in_order, outcome


@pytest.mark.parametrize("sql, numbered, asked, order", [
    ("SELECT :a", "SELECT $1", "SELECT ?", "a"),
    ("SELECT @a, $a", "SELECT $1, $1", "SELECT ?, ?", "aa"),
    ("SELECT :b + :a", "SELECT $1 + $2", "SELECT ? + ?", "ba"),
    ("SELECT ':a', \":a\", `:a`, :a", "SELECT ':a', \":a\", `:a`, $1", None, "a"),
    ("SELECT 'it''s :a' || :a", "SELECT 'it''s :a' || $1", None, "a"),
    ("SELECT E'it\\'s :a' || :a", "SELECT E'it\\'s :a' || $1", None, "a"),
    ("SELECT $$:a$$, $x$ $$ :a $x$, :a", "SELECT $$:a$$, $x$ $$ :a $x$, $1",
     None, "a"),
    ("SELECT 1 -- :a\n, :a /* :a */", "SELECT 1 -- :a\n, $1 /* :a */", None, "a"),
    ("SELECT :a::a, x[1:b], x:a", "SELECT $1::a, x[1:b], x:a", None, "a"),
    ("SELECT :a, :ab", "SELECT $1, :ab", "SELECT ?, :ab", "a"),
])
def test_names_become_places(sql, numbered, asked, order):
    names = sorted(set(order))
    assert in_order(sql, names, True) == (numbered, list(dict.fromkeys(order)))
    if asked is not None:
        assert in_order(sql, names, False) == (asked, list(order))


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT ':a'", "SELECT :ab, a"])
def test_a_query_has_each_parameter(sql):
    with pytest.raises(ValueError, match="no parameter 'a'"):
        in_order(sql, ["a"], True)


@pytest.mark.parametrize("sql, expected", [
    ("SELECT 1", "rows"), ("WITH a AS (SELECT 1) SELECT 1", "rows"),
    ("", "rows"), ("EXPLAIN INSERT INTO t VALUES (1)", "rows"),
    ("INSERT INTO t VALUES (1)", "count"), (" -- a\n/* b */;update t", "count"),
    ("delete from t", "count"), ("MERGE INTO t", "count"),
    ("replace into t values (1)", "count"),
    ("INSERT INTO t VALUES (1) RETURNING n", "rows"),
    ("create table t (n int)", "none"), ("DROP TABLE t", "none"),
    ("savepoint a", "none"), ("BEGIN", "none"),
])
def test_the_first_word_tells_the_outcome(sql, expected):
    assert outcome(sql) == expected
