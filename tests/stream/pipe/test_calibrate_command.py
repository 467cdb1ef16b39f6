"""`ragtide calibrate`: labels and scores of the same answers, from the tables to a setting that can be used."""

import json
import tomllib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.sample import score
from ragtide.stream.cli import main
from ragtide.stream.labels.rows import LabelRow
from tests.infra.fresh_database import reached

pytestmark = pytest.mark.clickhouse

METRIC = "groundedness.groundedness"
NOW = datetime.now(UTC) - timedelta(hours=1)


def run(*args: str, **variables: str) -> Result:
    return CliRunner().invoke(main, ["calibrate", *args], env={"RAGTIDE_CONFIG": None, "COLUMNS": "200", **variables})


def label(trace_id: str, version: int = 1, **changes: Any) -> LabelRow:
    made = LabelRow(trace_id, NOW, "rag.labels", 0, version, version, "ada", "", "", "", "", None, "")
    return made._replace(**changes)


@pytest.fixture
def labelled(database: Database) -> dict[str, str]:
    """A hundred answers with scores from 0.00 to 0.99; people call those below 0.40 bad, and two others."""
    rows, labels = [], []
    for number in range(100):
        name = f"t{number}"
        how: dict[str, Any] = {"evaluator": "groundedness", "run_id": "live", "app": "shop", "time": NOW}
        rows.append(score(name, metrics={"groundedness": number / 100}, **how))
        bad = number < 40 or number in (70, 80)
        labels.append(label(name, thumbs="down" if bad else "up", score=2.0 if bad else 5.0))
    labels.append(label("t50", 0, thumbs="down", score=1.0))  # an older label of the same trace
    labels.append(label("t51", 2, expected="[]"))  # a later one without a verdict
    rows.append(score("t99", run_id="other", evaluator="groundedness", metrics={"groundedness": 0.1}, time=NOW))
    database.insert("scores", rows)
    database.insert("labels", labels)
    return reached(database)


def test_it_proposes_a_setting_that_can_be_used(labelled: dict[str, str]) -> None:
    said = run(METRIC, "--app", "shop", **labelled)
    assert said.exit_code == 0, said.output
    head, _, setting = said.output.partition("[[")
    assert f"{METRIC}: 100 labelled answers, of which people call 42 bad" in head
    assert "now: threshold" in head
    assert "proposed: threshold 0.4, kappa 0.96 (0.90 to 1.00), precision 100% (91% to 100%), recall 95%" in head
    [override] = tomllib.loads(f"[[{setting}")["rules"]["overrides"]
    assert override == {"metric": METRIC, "app": "shop", "min": 0.4}


def test_scores_of_people_are_compared_from_where_they_are_good(labelled: dict[str, str]) -> None:
    found = json.loads(run(METRIC, "--good-from", "4", "--json", **labelled).output)
    assert (found["answers"], found["bad"]) == (100, 42)
    assert found["proposed"]["threshold"] == 0.4
    assert found["proposed"]["recall"]["value"] == pytest.approx(40 / 42)
    assert found["kappa_on_other_answers"]["value"] > 0.8
    everything_good = json.loads(run(METRIC, "--good-from", "1", "--json", **labelled).output)
    assert (everything_good["bad"], everything_good["proposed"]) == (0, None)


def test_without_labels_or_with_a_wrong_name_it_says_what_to_do(labelled: dict[str, str]) -> None:
    said = run("support.support", **labelled)
    assert (said.exit_code, "docs/labels.md says how" in said.output) == (0, True)
    unknown = run("groundednes.groundedness", **labelled)
    assert (unknown.exit_code, METRIC in unknown.output) == (2, True)
    assert run(METRIC, "--app", "shp", **labelled).exit_code == 2
    assert run(METRIC, "--run", "othr", **labelled).exit_code == 2
