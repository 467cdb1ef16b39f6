"""Statements run read only and within limits, and what fails says what to do."""

import asyncio
import json
from typing import Any

import pytest

from ragtide.dashboards.settings import ViewSettings
from ragtide.dashboards.viewer.execution import QueryRunner, Statement
from ragtide.sinks.clickhouse.database import Database

pytestmark = pytest.mark.clickhouse


def run(database: Database, *statements: str, **settings: Any) -> list[dict[str, Any]]:
    async def every() -> list[dict[str, Any]]:
        runner = QueryRunner(database, ViewSettings(**settings))
        asked = [Statement(str(number), sql) for number, sql in enumerate(statements)]
        found = [json.loads(line) async for line in runner.run(asked)]
        runner._threads.shutdown()
        return sorted(found, key=lambda line: int(line["key"]))

    return asyncio.run(every())


@pytest.mark.parametrize(
    "sql",
    ["INSERT INTO labels SELECT * FROM labels", "CREATE TABLE t (a Int8) ENGINE = Memory", "TRUNCATE TABLE windows",
     "ALTER TABLE windows DELETE WHERE 1", "DROP TABLE windows"]
)  # fmt: skip
def test_no_statement_changes_anything_even_with_the_key_that_may(database: Database, sql: str) -> None:
    (line,) = run(database, sql)
    assert line["error"]["says"]
    assert database.rows("SELECT count() AS n FROM windows") == [{"n": 0}]


def test_rows_beyond_the_limit_are_left_out_and_that_is_told(database: Database) -> None:
    whole, cut, limited = run(
        database,
        "SELECT number FROM numbers(100)",
        "SELECT number FROM numbers(1000000)",
        "SELECT number FROM numbers(1000000) LIMIT 7",
        max_rows=100,
    )
    assert (whole["rows"], whole["cut"]) == (100, False)
    assert (cut["rows"], cut["cut"], len(cut["answer"]["data"])) == (100, True, 101)
    assert (limited["rows"], limited["cut"]) == (7, False)


def test_equal_statements_are_run_once_and_each_is_answered(database: Database) -> None:
    sql = "SELECT generateUUIDv4() AS id"
    first, other, again = (line["answer"]["data"] for line in run(database, sql, "SELECT 1 AS id", sql))
    assert first == again != other
    failed, too = (line["error"]["says"] for line in run(database, "SELECT * FROM none", "SELECT * FROM none"))
    assert failed == too


def test_a_statement_that_reads_too_much_is_stopped(database: Database) -> None:
    sql = "SELECT sum(number) FROM numbers_mt(10000000000)"
    for limit in ({"max_bytes_to_read": 1 << 20}, {"query_timeout_s": 0.5}):
        (line,) = run(database, sql, **limit)
        assert "more time or memory than the viewer allows" in line["error"]["says"]
        assert "shorter time range" in line["error"]["do"]


def test_a_missing_table_says_what_to_do(database: Database) -> None:
    (line,) = run(database, "SELECT * FROM no_such_table")
    assert "ragtide migrate" in line["error"]["says"]


def test_a_wrong_statement_fails_alone(database: Database) -> None:
    wrong, right = run(database, "SELECT no_such_function(1)", "SELECT 1 AS a")
    assert "query" in wrong["error"]["says"]
    assert right["answer"]["data"] == [[1]]


def test_numbers_and_texts_arrive_as_json(database: Database) -> None:
    (line,) = run(
        database,
        "SELECT toUInt64(5) AS n, nan AS none, 0.1 AS f, 'a\\tb\\n\"c' AS text, toDateTime64(1.5, 3, 'UTC') AS time, "
        "toDecimal64(1.25, 2) AS d, [1, 2] AS list",
    )
    assert line["answer"]["data"] == [[5, None, 0.1, 'a\tb\n"c', "1970-01-01T00:00:01.500Z", 1.25, [1, 2]]]
    assert "statistics" not in line["answer"]


def test_equal_statements_have_equal_answers(database: Database) -> None:
    first, second = run(database, "SELECT 1 AS a", "SELECT 1 AS a")
    assert first["answer"] == second["answer"]
