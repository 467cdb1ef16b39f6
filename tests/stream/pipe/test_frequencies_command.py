"""`ragtide evaluators frequencies`: the table that it learns is one that the evaluator reads."""

import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ragtide.evaluators import registry
from ragtide.evaluators.builtin.support import Params
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import TextRow
from ragtide.stream.cli import main
from tests.infra.fresh_database import reached

pytestmark = pytest.mark.clickhouse
NOW = datetime.now(UTC)


def traced(number: int, *chunks: str, app: str = "docs-bot", age: timedelta = timedelta(hours=1)) -> TextRow:
    return TextRow("live", app, "prod", NOW - age, f"t{number}", 1, "why?", "so", [], list(chunks), [], "", "{}", "{}")


def learn(database: Database, *arguments: str, exit_code: int = 0) -> Result:
    environment = {"RAGTIDE_CONFIG": None, **reached(database)}
    found = CliRunner().invoke(main, ["evaluators", "frequencies", *arguments], env=environment)
    assert found.exit_code == exit_code, found.output
    return found


def test_words_of_every_context_weigh_less_than_rare_ones(database: Database, tmp_path: Path) -> None:
    out = tmp_path / "frequencies.json"
    rare = "The button shows the firmware."
    some = ["The button resets the modem." if n < 5 else "The button is red." for n in range(20)]
    database.insert("trace_texts", [traced(n, f"{text} Page {n}.") for n, text in enumerate(some)])
    database.insert("trace_texts", [traced(20, rare, rare, ""), traced(21, "unrelated vocabulary", app="another")])
    said = learn(database, "docs-bot", "--out", str(out)).output
    assert "21 texts" in said
    assert f'"docs-bot" = "{out}"' in said
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    weight = Params.model_validate({"frequencies": {"docs-bot": str(out)}}).weight_in("docs-bot")
    assert weight("button") < weight("modem") < weight("vocabulary") == 1


def test_only_the_newest_chunks_of_those_days_count(database: Database, tmp_path: Path) -> None:
    out = tmp_path / "frequencies.json"
    ages = [timedelta(hours=1), timedelta(hours=2), timedelta(days=10)]
    database.insert("trace_texts", [traced(n, f"chunk number {n}", age=age) for n, age in enumerate(ages)])
    assert "of 3 texts" in learn(database, "docs-bot", "--out", str(out)).output
    assert "of 2 texts" in learn(database, "docs-bot", "--out", str(out), "--days", "7").output
    assert "of 1 texts" in learn(database, "docs-bot", "--out", str(out), "--limit", "1").output


def test_without_stored_texts_it_says_what_to_check_and_writes_nothing(database: Database, tmp_path: Path) -> None:
    out = tmp_path / "frequencies.json"
    said = learn(database, "docs-bot", "--out", str(out), exit_code=2).stderr
    assert "no text of a chunk of docs-bot is stored since" in said
    assert "privacy.store_texts" in said
    assert not out.exists()


def test_help_names_the_evaluators_that_read_a_table_and_no_others() -> None:
    reading = {id for id, one in registry.load().items() if "frequencies" in one.params.model_fields}
    said = re.findall(r"\w+", CliRunner().invoke(main, ["evaluators", "frequencies", "--help"]).output)
    assert {id for id in registry.load() if id in said} == reading == {"support"}
