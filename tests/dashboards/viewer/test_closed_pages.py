"""Queries that nobody waits for any more are killed: of a closed page, and of a viewer that ends."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from ragtide.dashboards.settings import ViewSettings
from ragtide.dashboards.viewer.execution import QueryRunner, Statement
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.viewer.gallery import panel, query
from tests.dashboards.viewer.serving import Served, serving

pytestmark = pytest.mark.clickhouse

ENDLESS = (
    "SELECT count() AS endless FROM system.numbers WHERE NOT sleepEachRow(0.01) AND {} SETTINGS max_block_size = 10"
)
APART = "$__interval_s"  # so that a request can ask several times: equal statements are run once
QUICK = "SELECT 1 AS a"
LIMITS: dict[str, Any] = {"query_timeout_s": 600, "max_bytes_to_read": 1 << 50}
DOCUMENT: dict[str, Any] = {
    "uid": "endless",
    "title": "Endless",
    "description": "",
    "time": {"from": "now-1h", "to": "now"},
    "annotations": {"list": []},
    "templating": {"list": []},
    "panels": [
        panel("stat", title, (0, 0, 4, 4), query(sql)) for title, sql in (("A", QUICK), ("B", ENDLESS.format(APART)))
    ],
}


@pytest.fixture(params=["key", "reader key"])
def reader(database: Database, clickhouse_server: EmbeddedClickHouse, request: pytest.FixtureRequest) -> Database:
    settings = clickhouse_server.settings if request.param == "key" else clickhouse_server.reader_settings
    return Database(settings.model_copy(update={"database": database.name}))


@pytest.fixture
def viewer(reader: Database) -> Iterator[Served]:
    with serving(reader, documents={"endless": DOCUMENT}, **LIMITS) as served:
        yield served


def running(database: Database) -> int:
    sql = "SELECT count() AS n FROM system.processes WHERE query LIKE '%AS endless%' AND query NOT LIKE '%processes%' "
    return int(database.rows(sql + f"AND Settings['database'] IN ('', '{database.name}')")[0]["n"])


def wait_for(database: Database, count: int) -> None:
    """Wait until so many endless statements run; they would for ten minutes."""
    deadline = time.monotonic() + 60
    while (found := running(database)) != count:
        assert time.monotonic() < deadline, f"{found} statements run"
        time.sleep(0.02)


def request_of(count: int) -> dict[str, Any]:
    ids = {each["title"]: str(each["id"]) for each in DOCUMENT["panels"]}
    names = ["A", *["B"] * count]
    queries = [
        {"key": str(at), "kind": "panel", "name": ids[name], "ref": "A", "interval_s": at + 1}
        for at, name in enumerate(names)
    ]
    return {"uid": "endless", "from": 0, "to": 60_000, "variables": {}, "queries": queries}


def test_a_closed_page_ends_its_queries_running_and_waiting(viewer: Served, database: Database) -> None:
    most = ViewSettings().concurrent_queries
    page = viewer.post("/api/query", request_of(most + 3), stream=True)
    lines = page.iter_lines()  # its end would close the page
    assert json.loads(next(lines))["answer"]["data"] == [[1]]
    wait_for(database, most)
    page.close()
    wait_for(database, 0)
    assert viewer.post("/api/query", request_of(0)).json()["answer"]["data"] == [[1]]


def test_a_page_that_is_open_keeps_its_query(viewer: Served, database: Database) -> None:
    pages = [viewer.post("/api/query", request_of(1), stream=True) for _ in range(2)]
    wait_for(database, 2)
    pages[0].close()
    wait_for(database, 1)
    assert viewer.post("/api/query", request_of(0)).status_code == 200
    assert running(database) == 1
    pages[1].close()
    wait_for(database, 0)


def test_a_viewer_that_ends_leaves_no_query_behind(reader: Database, database: Database) -> None:
    with serving(reader, documents={"endless": DOCUMENT}, **LIMITS) as served:
        page = served.post("/api/query", request_of(2), stream=True)
        wait_for(database, 2)
    wait_for(database, 0)
    page.close()


def test_where_killing_fails_the_time_limit_holds(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    class Unkillable(Database):
        def kill(self, query_ids: object) -> None:
            super().rows("SELECT no_such_function(1)")

    async def give_up() -> None:
        runner = QueryRunner(Unkillable(database.settings), ViewSettings(query_timeout_s=1))
        async with aclosing(runner.run([Statement("quick", QUICK), Statement("endless", ENDLESS.format(1))])) as lines:
            await anext(lines)
        await runner.close()

    asyncio.run(give_up())
    wait_for(database, 0)
    assert "run on to their time limit: ClickHouse refuses the statement (code 46)" in caplog.text
