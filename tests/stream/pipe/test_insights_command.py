"""`ragtide insights` against the real ClickHouse."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from ragtide.drift.insights.model import InsightRow
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from tests.infra.fresh_database import reached

pytestmark = pytest.mark.clickhouse


def insight(name: str, type_: str, app: str, days: int) -> InsightRow:
    end = datetime.now(UTC) - timedelta(days=days)
    figures = json.dumps({"p": 0.01})
    return InsightRow(
        name, type_, app, "prod", f"{name} is so.", figures, ["t9"], ["Look."], end - timedelta(days=1), end, 1
    )


def test_insights_are_listed_the_newest_first(database: Database) -> None:
    stored = [insight("old", "cost", "docs", 3), insight("new", "cost", "docs", 0), insight("other", "data", "shop", 0)]
    database.insert("insights", stored)

    def run(*words: str) -> str:
        told = CliRunner().invoke(main, ["insights", *words], env={"RAGTIDE_CONFIG": None, **reached(database)})
        assert told.exit_code == 0, told.output
        return told.output

    shown = run("--app", "docs", "--days", "9")
    assert shown.index("new is so.") < shown.index("old is so.")
    assert "  - Look." in shown
    assert "t9" in shown
    assert [one["insight_id"] for one in json.loads(run("--json", "--days", "0.5"))] == ["new", "other"]
    (one,) = json.loads(run("--json", "--days", "0.5", "--type", "data"))
    assert (one["app"], one["attributes"]) == ("shop", {"p": 0.01})
    assert run("--app", "shop", "--type", "cost") == "no insights\n"
