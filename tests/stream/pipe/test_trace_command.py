"""`ragtide trace` on the real engine: texts as stored, scores with evidence, and the problems that name the trace."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.problems.model import EventRow
from ragtide.evaluators.outcome import Evidence
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.cli.trace_render import Place, marked
from tests.infra.fresh_database import reached
from tests.stream.pipe.replaying import fields, file_source, go, lines, settings

ANSWER = "Write to joe.bloggs@mail.example.org,\nor call \x1b[2Jus."
TRACE = fields(trace_id="t-1", app="docs", environment="prod", question="Whom do I ask?", answer=ANSWER)
EVALUATORS = {"enabled": ["pii_leakage", "inputs", "rouge"]}
needs_clickhouse = pytest.mark.clickhouse


def stored(database: Database, tmp_path: Path, *traces: dict[str, Any], **sections: Any) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces))
    go(database, file_source(file), "live", chosen=settings(evaluators=EVALUATORS, **sections))


def trace(database: Database, *args: str, exit_code: int = 0) -> Result:
    variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "100", **reached(database)}
    found = CliRunner().invoke(main, ["trace", *args], env=variables)
    assert found.exit_code == exit_code, found.output
    return found


def opened(problem_id: str, examples: list[str]) -> EventRow:
    now = datetime.now(UTC)
    place = ("docs", "prod", "", "level", "pii_leakage.passes", "", "")
    opening = EventRow(problem_id, f"{problem_id}-1", "opened", 1, now, *place, examples=examples, kind="threshold")
    return opening._replace(type="privacy", severity="critical", description="E-mail addresses leak.")


@needs_clickhouse
def test_texts_scores_evidence_and_problems_of_a_trace(database: Database, tmp_path: Path) -> None:
    stored(database, tmp_path, TRACE, fields(trace_id="t-2", app="docs", environment="prod"))
    database.insert("problem_events", [opened("aaaa1111bbbb2222", ["t-0", "t-1"]), opened("cccc", ["t-2"])])
    shown = trace(database, "t-1").output
    assert "trace t-1 of docs prod" in shown
    assert "  | Whom do I ask?" in shown
    assert "  | Write to [1>joe.bloggs@mail.example.org<1]," in shown
    assert "  | or call \\x1b[2Jus." in shown
    assert "\x1b" not in shown
    assert "passes 0 bad: good is ≥" in shown
    assert "    [1] answer 9-36 email" in shown
    assert "not applicable: rouge (" in shown
    assert "ragtide problems show aaaa1111" in shown
    assert "cccc" not in shown
    found = json.loads(trace(database, "t-1", "--json").output)
    assert found["texts"]["answer"] == ANSWER
    scores = {one["evaluator"]: one for one in found["scores"]}
    assert scores["pii_leakage"]["evidence"][0]["kind"] == "email"
    assert [one["problem_id"] for one in found["problems"]] == ["aaaa1111bbbb2222"]
    assert "no problem names this trace" not in shown


@needs_clickhouse
@pytest.mark.parametrize(
    ("how", "said"), [("masked", "  | Write to [email],"), ("off", "texts: none are stored (privacy.store_texts)")]
)
def test_texts_are_shown_as_privacy_allows(database: Database, tmp_path: Path, how: str, said: str) -> None:
    stored(database, tmp_path, TRACE, privacy={"store_texts": how})
    shown = trace(database, "t-1").output
    assert said in shown
    assert "joe.bloggs" not in shown
    assert "[1>" not in shown
    assert "[1] answer 9-36 email" in shown


@needs_clickhouse
def test_an_id_that_several_applications_have_is_chosen_by_name(database: Database, tmp_path: Path) -> None:
    stored(database, tmp_path, TRACE, {**TRACE, "app": "shop", "question": "How much is it?"})
    said = trace(database, "t-1", exit_code=2).output
    assert "--app docs --environment 'prod'" in said
    assert "--app shop" in said
    assert "How much is it?" in trace(database, "t-1", "--app", "shop").output
    assert "there is one of docs prod, shop prod" in trace(database, "t-1", "--app", "bank", exit_code=2).output
    assert "no trace 't-9' in live traffic" in trace(database, "t-9", exit_code=2).output


@needs_clickhouse
def test_a_long_text_is_cut_unless_asked_for(database: Database, tmp_path: Path) -> None:
    stored(database, tmp_path, {**TRACE, "answer": "word " * 1000 + "joe.bloggs@mail.example.org"})
    shown = trace(database, "t-1").output
    assert "1,027 more characters; --full prints them" in shown
    assert "joe.bloggs" not in shown
    assert "[1>joe.bloggs" in trace(database, "t-1", "--full").output


def test_places_may_overlap_and_a_place_outside_of_the_text_is_not_marked() -> None:
    spans = [(0, 5), (3, 9), (3, 4), (6, 99), (7, 7)]
    places = [Place(n, "e", Evidence("answer", *span)) for n, span in enumerate(spans, 1)]
    assert [line.plain for line in marked("abcde\nfghij", places)] == ["[1>abc[2>[3>d<3]e<1]", "fgh<2]ij"]
