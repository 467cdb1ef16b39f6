"""`ragtide calibrate`: labels and scores of the same answers, from the tables to a setting that can be used."""

import json
import tomllib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.evaluators.errors import BadRecord
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.sample import score
from ragtide.stream.cli import main
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.label import Label
from tests.infra.fresh_database import reached
from tests.label_rows import label_row

pytestmark = pytest.mark.clickhouse

METRIC = "groundedness.groundedness"
SAMPLE: dict[str, Any] = {"sample_rate": 0.6, "sample_evaluator": "groundedness"}
NOW = datetime.now(UTC) - timedelta(hours=1)


def run(*args: str, command: str = "calibrate", **variables: str) -> Result:
    return CliRunner().invoke(
        main, [*command.split(), *args], env={"RAGTIDE_CONFIG": None, "COLUMNS": "200", **variables}
    )


@pytest.fixture
def labelled(database: Database) -> dict[str, str]:
    """A hundred answers with scores from 0.00 to 0.99; people call those below 0.40 bad, and two others."""
    rows, labels = [], []
    for number in range(100):
        name = f"t{number}"
        how: dict[str, Any] = {"evaluator": "groundedness", "run_id": "live", "app": "shop", "time": NOW}
        rows.append(score(name, metrics={"groundedness": number / 100}, **how))
        bad = number < 40 or number in (70, 80)
        labels.append(label_row(name, number, thumbs="down" if bad else "up", score=2.0 if bad else 5.0))
    labels.append(label_row("t50", 0, 0, thumbs="down", score=1.0))  # an older label of the same trace
    labels.append(label_row("t51", 2, 2, expected="[]"))  # a later one without a verdict
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


def test_labels_of_a_sample_say_what_people_would_say_of_all_answers(labelled: dict[str, str]) -> None:
    unasked = run(METRIC, **labelled)
    assert "of all answers: unknown, because no label is of a sample" in unasked.output
    assert json.loads(run(METRIC, "--json", **labelled).output)["people"] is None


def test_a_sample_is_drawn_labelled_sent_and_estimated(labelled: dict[str, str], database: Database) -> None:
    drawn = run(METRIC, "--rate", "0.6", "--app", "shop", command="labels sample", **labelled)
    assert drawn.exit_code == 0, drawn.output
    lines = [json.loads(line) for line in drawn.output.splitlines()]
    assert 50 <= len(lines) < 80
    assert lines[0] == {"trace_id": lines[0]["trace_id"], **SAMPLE, "verdict": {"thumbs": None}}
    with pytest.raises(BadRecord, match="one of thumbs, score and comment is required"):
        read(lines[0])  # not completed

    for line in lines:
        line["verdict"] = {"thumbs": "down" if int(line["trace_id"][1:]) < 40 else "up"}
    rows = [
        label_row(one.trace_id, at, 9, thumbs=one.verdict and one.verdict.thumbs, **SAMPLE)
        for at, one in enumerate(map(read, lines))
    ]
    database.insert("labels", rows)
    found = json.loads(run(METRIC, "--app", "shop", "--json", **labelled).output)["people"]
    assert found["low"] < 0.6 < found["high"], "60 of all 100 answers are good"
    assert (found["judged"], found["labels"]) == (100, len(lines))
    assert found["coverage"] == pytest.approx(len(lines) / 60)
    said = run(METRIC, "--app", "shop", **labelled).output
    assert f"good, estimated from {len(lines)} labels of a sample and the scores of 100 judged answers" in said
    assert "of that sample has labels" not in said
    again = run(METRIC, "--rate", "0.6", command="labels sample", **labelled)
    assert "no answer with a score" in again.output

    database.insert("labels", [row._replace(version=10, sample_rate=1.0) for row in rows[:50]])
    database.command("DELETE FROM labels WHERE sample_rate = 0.6")
    assert "only 50% of that sample has labels" in run(METRIC, "--app", "shop", **labelled).output
    database.insert("labels", [rows[50]._replace(version=10, sample_rate=0.5)])
    assert "several sample rates, so it is unknown how many" in run(METRIC, "--app", "shop", **labelled).output


def test_answers_before_the_first_label_of_a_sample_lack_no_label(labelled: dict[str, str], database: Database) -> None:
    how: dict[str, Any] = {"evaluator": "groundedness", "run_id": "live", "app": "shop"}
    last_week = [
        score(f"old{at}", time=NOW - timedelta(days=7), metrics={"groundedness": 0.9}, **how) for at in range(400)
    ]
    database.insert("scores", last_week)
    sample = {**SAMPLE, "sample_rate": 1.0}
    database.insert("labels", [label_row(f"t{at}", at, 9, thumbs="up", **sample) for at in range(100)])
    found = json.loads(run(METRIC, "--app", "shop", "--json", **labelled).output)["people"]
    assert (found["judged"], found["coverage"]) == (100, 1.0)
    assert found["since"] == found["until"]
    said = run(METRIC, "--app", "shop", **labelled).output
    assert f"of all answers from {NOW:%Y-%m-%d %H:%M:%S} UTC to" in said
    assert "of that sample has labels" not in said


def read(line: dict[str, Any]) -> Label:
    return decode(StoredRecord("rag.labels", 0, 0, 1, None, json.dumps(line).encode()), 10_000)


def test_a_wrong_sample_says_what_to_do(labelled: dict[str, str]) -> None:
    for args, advice in (
        (["groundednes.groundedness", "--rate", "0.1"], METRIC),
        ([METRIC, "--rate", "0"], "--rate"),
        ([METRIC, "--rate", "1.5"], "--rate"),
        ([METRIC, "--rate", "1", "--app", "shp"], "there is no 'shp'"),
        ([METRIC, "--rate", "1", "--run", "othr"], "there is no 'othr'"),
    ):
        said = run(*args, command="labels sample", **labelled)
        assert (said.exit_code, advice in said.output) == (2, True), said.output


def test_a_sample_of_more_answers_than_people_can_label_is_refused(
    labelled: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragtide.stream.cli.labels._MOST", 99)
    said = run(METRIC, "--rate", "1", "--app", "shop", command="labels sample", **labelled)
    assert said.exit_code == 2
    assert "more than 99 answers are drawn; lower --rate or --days" in said.output
    assert "trace_id" not in said.output, "a part of them would be no random sample"
    assert len(run(METRIC, "--rate", "0.5", command="labels sample", **labelled).output.splitlines()) < 99


def test_without_labels_or_with_a_wrong_name_it_says_what_to_do(labelled: dict[str, str]) -> None:
    said = run("support.support", **labelled)
    assert (said.exit_code, "docs/labels.md says how" in said.output) == (0, True)
    unknown = run("groundednes.groundedness", **labelled)
    assert (unknown.exit_code, METRIC in unknown.output) == (2, True)
    assert run(METRIC, "--app", "shp", **labelled).exit_code == 2
    assert run(METRIC, "--run", "othr", **labelled).exit_code == 2
