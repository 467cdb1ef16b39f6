"""What judges write about scores: stored like texts of the trace, shown beside its score, and deleted with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide.drift.windows import WindowKey
from ragtide.drift.windows.replaced_rows import delete_replaced
from ragtide.evaluators.checks.check import same
from ragtide.evaluators.contract import validate_outcome
from ragtide.evaluators.outcome import LONGEST_EXPLANATION, Failed, Scored
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ExplanationRow
from ragtide.sinks.sample import explanation, score, trace
from ragtide.stream.cli import main
from tests.infra.fresh_database import reached
from tests.stream.judge.chat_server import Behaviour, chat_server, reply
from tests.stream.pipe.replaying import fields, file_source, go, lines, settings

SAID = "It landed in 1969: right, \u2028says joe.bloggs@mail.example.org.\ud83d"
KEPT = "It landed in 1969: right, says joe.bloggs@mail.example.org.\ufffd"
ROWS = "SELECT * EXCEPT (ingested_at) FROM explanations FINAL"


def verdict(summary: str = SAID) -> Behaviour:
    return reply({"evaluation_summary": summary, "evaluation_score": 0.25})


def judged(database: Database, tmp_path: Path, judge: Behaviour, run: str = "live", **sections: Any) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(fields(trace_id="t-1", app="docs", environment="prod", question="When?", answer="In 1969.")))
    with chat_server(judge) as server:
        endpoint = {"url": server.url, "model": "m", "retries": 0}
        own = {"endpoints": {"local": endpoint}, "endpoint_by_evaluator": {"fact_check": "local"}}
        evaluators = {"judge": own, "params": {"fact_check": {"tools": ["calculator"]}}}
        chosen = settings(evaluators=evaluators | {"enabled": ["fact_check", "inputs"]}, **sections)
        go(database, file_source(file), run, chosen=chosen)


def stored(database: Database) -> list[str]:
    return [str(row["explanation"]) for row in database.rows(ROWS)]


def shown(database: Database, *args: str) -> str:
    variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "200", **reached(database)}
    ran = CliRunner().invoke(main, ["trace", "t-1", *args], env=variables)
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.mark.clickhouse
def test_an_explanation_is_stored_with_its_score_and_shown_beside_it(database: Database, tmp_path: Path) -> None:
    judged(database, tmp_path, verdict())
    [row] = database.rows(ROWS)
    [of_score] = database.rows("SELECT version FROM scores FINAL WHERE evaluator = 'fact_check'")
    assert ExplanationRow(**row)[:4] == ("live", "docs", "prod", "fact_check")
    assert (row["trace_id"], row["version"], row["explanation"]) == ("t-1", of_score["version"], KEPT)
    assert f"    explanation: {KEPT}" in shown(database)
    scores = {one["evaluator"]: one["explanation"] for one in json.loads(shown(database, "--json"))["scores"]}
    assert scores == {"fact_check": KEPT, "inputs": ""}


@pytest.mark.clickhouse
@pytest.mark.parametrize(
    ("how", "kept"), [("masked", [KEPT.replace("joe.bloggs@mail.example.org", "[email]")]), ("off", [])]
)
def test_an_explanation_is_masked_like_texts(database: Database, tmp_path: Path, how: str, kept: list[str]) -> None:
    judged(database, tmp_path, verdict(), privacy={"store_texts": how})
    assert stored(database) == kept
    assert "joe.bloggs" not in shown(database)
    assert database.rows("SELECT metrics FROM scores FINAL WHERE status = 'scored' AND evaluator = 'fact_check'")


@pytest.mark.clickhouse
def test_an_explanation_of_an_older_score_is_not_shown_and_goes(database: Database) -> None:
    one = trace("t-1", version=5 << 32)
    database.insert("traces", [one])
    database.insert("scores", [score("t-1", evaluator="fact_check", version=5 << 32)])
    database.insert("explanations", [explanation("t-1", version=2 << 32, explanation="of before")])
    assert "of before" not in shown(database, "--run", one.run_id)
    start = int(one.time.timestamp()) // 60 * 60
    deleted = delete_replaced(database, [WindowKey(one.run_id, one.app, one.environment, start)], 60)
    assert deleted["explanations"] == 1
    assert stored(database) == []


def test_explanations_are_checked_and_compared() -> None:
    fact_check = load()["fact_check"]
    given = Scored({"fact_check": 1.0}, explanation="a" * LONGEST_EXPLANATION)
    assert validate_outcome(fact_check, given) == given
    for wrong in ("a" * (LONGEST_EXPLANATION + 1), None, 7):
        said = validate_outcome(fact_check, Scored({"fact_check": 1.0}, explanation=wrong))  # type: ignore[arg-type]  # as untyped code may
        assert said == Failed("contract", "an explanation must be a text of at most 4,000 characters")
    said = validate_outcome(load()["exact_match"], Scored({"exact_match": 1.0}, explanation="why"))
    assert said == Failed("contract", "an explanation is a judge's, and the evaluator asks none")
    kept = validate_outcome(fact_check, Scored({"fact_check": True}, explanation="why"))
    assert kept == Scored({"fact_check": 1.0}, explanation="why")
    assert not same(kept, Scored({"fact_check": 1.0}, explanation="because"))
