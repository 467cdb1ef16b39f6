"""The dashboard of one trace, on the real engine: its texts in pieces, its scores, and traces to choose from."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from ragtide.dashboards.build import build
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ExplanationRow, ScoreRow, TextRow, TraceRow
from tests.dashboards.lint import faults, panels, queries
from tests.dashboards.macros import Choice, expanded
from tests.dashboards.sample_rows import APP, NOON, event, window
from tests.drift.world import score_row, trace_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

END = NOON + timedelta(minutes=10)
LINKS = {
    "Langfuse": "https://lf.example/{app}/traces/{trace_id}?env={environment}&at={time_ms}",
    "Tempo": "/explore?q={trace_id}",
}
# Characters are not bytes, nor UTF-16 units: "Größe" has 5 characters, the fox is one.
ANSWER = "Größe M 🦊 fits. It costs 5 €.  Call me."
QUESTION = "Which size? mail kim@example.org"
CHUNKS = ["Size M fits most. Price: 5 €.", "Phone 123."]
FITS, COSTS, CALL = (ANSWER.index(start) for start in ("Größe", "It costs", "Call"))


def place(field: str, start: int, end: int, **other: Any) -> dict[str, Any]:
    return {"field": field, "start": start, "end": end, **other}


class Label(NamedTuple):
    """A row of `labels`, with what the dashboard reads."""

    trace_id: str
    time: Any
    author: str
    thumbs: str
    comment: str


def trace_of(trace_id: str, minute: float, **other: Any) -> TraceRow:
    row = trace_row(score_row(NOON + timedelta(minutes=minute), trace_id, app=APP, version=1))
    return row._replace(**other)


def score(trace_id: str, minute: float, evaluator: str, metrics: dict[str, float], **other: Any) -> ScoreRow:
    evidence = json.dumps(other.pop("evidence", []))
    return score_row(
        NOON + timedelta(minutes=minute), trace_id, metrics, evaluator=evaluator, app=APP, evidence=evidence, **other
    )


def texts(trace_id: str, minute: float, **other: Any) -> TextRow:
    made = TextRow("live", APP, "prod", NOON + timedelta(minutes=minute), trace_id, 1, QUESTION, ANSWER,
                   ["c1", "c2"], CHUNKS, ["M.", "Size M."], "", "{}", "{}")  # fmt: skip
    return made._replace(**other)


def rows() -> Iterator[tuple[str, list[Any]]]:
    """Trace t1 fails groundedness and leaks; t2 is masked; t3 failed; t4 is a replay's, t5 another application's."""
    yield (
        "traces",
        [
            trace_of("t1", 1, latency_s=1.5, cost_usd=0.002, segments={"tenant": "acme"}, session_id="s1"),
            trace_of("t2", 2, run_id="probe"),
            trace_of("t3", 3, error="Timeout", environment="staging", model="m2"),
            trace_of("t4", 4, run_id="replayed"),
            trace_of("t5", 5, app="another"),
            trace_of("old", -3000),
        ],
    )
    yield (
        "trace_texts",
        [texts("t1", 1), texts("t2", 2, run_id="probe", rest="", answer="Call [phone]."), texts("old", -3000)],
    )
    weak = place("answer", COSTS, COSTS + 12, kind="least_grounded", score=0.25)
    best = place("contexts", 18, 29, chunk_id="c1", kind="best_support", score=0.25)
    relevant = place("answer", FITS, FITS + 15, kind="most_relevant", score=0.9)
    least = place("answer", COSTS, COSTS + 12, kind="least_relevant", score=0.5)
    leaks = [place("answer", CALL, CALL + 4, kind="phone"), place("question", 17, 32, kind="email")]
    reference = place("expected", 2, 9, kind="most_similar", score=0.8)
    yield "scores", [
        score("t1", 1, "groundedness", {"groundedness": 0.25}, evidence=[weak, best], version=1),
        score("t1", 1, "answer_relevancy_sentence", {"answer_relevancy": 0.9, "mean_answer_relevancy": 0.7},
              evidence=[relevant, least]),
        score("t1", 1, "pii_leakage", {"passes": 0.0, "failures": 1.0}, evidence=leaks),
        score("t1", 1, "sentence_similarity", {"cosine": 0.8}, evidence=[reference]),
        score("t1", 1, "readability", {"flesch_reading_ease": 70.0}),
        score("t1", 1, "toxicity", {}, status="failed", reason="out_of_memory"),
        score("t1", 1, "bleu", {}, status="not_applicable", reason="missing_expected"),
        score("t2", 2, "pii_leakage", {"passes": 0.0, "failures": 1.0}, run_id="probe", evidence=[leaks[0]]),
        score("t3", 3, "groundedness", {"groundedness": 0.9}, environment="staging", model="m2"),
    ]  # fmt: skip
    checked = ExplanationRow("live", APP, "prod", "groundedness", NOON + timedelta(minutes=1), "t1", 1, "Costs 7.")
    yield "explanations", [checked, checked._replace(evaluator="readability", version=0)]
    yield (
        "problem_events",
        [
            event("p1", "1", "opened", 1, NOON + timedelta(minutes=2), examples=("t1", "t9"), description="it fell"),
            event("p2", "2", "opened", 1, NOON + timedelta(minutes=2), examples=("t9",)),
            event("p3", "3", "opened", 1, NOON + timedelta(minutes=2), app="another", examples=("t1",)),
        ],
    )
    yield "labels", [Label("t1", NOON + timedelta(minutes=3), "kim", "down", "wrong price")]
    yield "windows", [window("inputs.question_words", NOON, [0.5])]


class Shown:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.document = build(load(), database=database.name, trace_links=LINKS)["trace"]
        self.queries = dict(queries(self.document))

    def rows(self, where: str, trace_id: str = "t1", end: datetime = END, **other: Choice) -> list[dict[str, Any]]:
        chosen: dict[str, Choice] = {"run": "live", "app": APP, "environment": ["$__all"], "model": ["$__all"]}
        chosen |= {"errors": "all", "worst": "newest", "trace_id": trace_id, **other}
        return self.database.rows(expanded(self.queries[where], NOON, end, 60, chosen))


@pytest.fixture(scope="module")
def shown(clickhouse_server: EmbeddedClickHouse) -> Iterator[Shown]:
    days = ("traces_days", "texts_days", "labels_days", "windows_minute_days")
    with fresh_database(clickhouse_server, **dict.fromkeys(days, 100_000)) as database:
        for table, made in rows():
            database.insert(table, made)
        yield Shown(database)


def test_every_query_gives_something(shown: Shown) -> None:
    assert list(faults(shown.document)) == []
    for where in shown.queries:
        assert shown.rows(where), where


def test_the_answer_is_cut_at_the_borders_of_evidence_and_takes_the_worst_verdict(shown: Shown) -> None:
    found = shown.rows("table Answer A")
    assert [(row["text"], row["verdict"], row["why"], row["nearest chunk"]) for row in found] == [
        ("Größe M 🦊 fits. ", "good", "answer_relevancy_sentence: most relevant 0.9", ""),
        ("It costs 5 €", "bad",
         "groundedness: least grounded 0.25; answer_relevancy_sentence: least relevant 0.5", "c1"),
        (".  ", "not judged", "", ""),
        ("Call", "bad", "pii_leakage: phone", ""),
        (" me.", "not judged", "", ""),
    ]  # fmt: skip
    assert "".join(row["text"] for row in found) == ANSWER
    assert [row["from"] for row in found] == [FITS, COSTS, COSTS + 12, CALL, CALL + 4]


def test_question_chunks_and_references_are_cut_likewise(shown: Shown) -> None:
    question = shown.rows("table Question A")
    assert [(row["text"], row["verdict"]) for row in question] == [
        (QUESTION[:17], "not judged"),
        (QUESTION[17:], "bad"),
    ]
    chunks = shown.rows("table Retrieved chunks A")
    assert [(row["rank"], row["chunk"], row["text"], row["verdict"]) for row in chunks] == [
        (1, "c1", CHUNKS[0][:18], "not judged"),
        (1, "c1", CHUNKS[0][18:], "bad"),
        (2, "c2", CHUNKS[1], "not judged"),
    ]
    # Offsets of references count over all of them: 2 to 9 is the second one, whole.
    references = shown.rows("table Reference answers A")
    assert [(row["rank"], row["text"], row["verdict"], row["from"]) for row in references] == [
        (1, "M.", "not judged", 0),
        (2, "Size M.", "good", 0),
    ]


def test_masked_texts_stay_whole_and_their_evidence_is_known_by_position(shown: Shown) -> None:
    (answer,) = shown.rows("table Answer A", "t2")
    assert (answer["text"], answer["verdict"], answer["why"]) == ("Call [phone].", "masked", "")
    (evidence,) = shown.rows("table Evidence A", "t2")
    assert (evidence["kind"], evidence["from"], evidence["to"]) == ("phone", CALL, CALL + 4)
    assert shown.rows("table Answer A", "t3") == []  # no text is stored


def test_scores_stand_against_their_thresholds_failures_first(shown: Shown) -> None:
    found = [
        (row["verdict"], row["metric"], row["value"], row["threshold"], row["reason"])
        for row in shown.rows("table Scores A")
    ]
    assert found == [
        ("fail", "answer_relevancy_sentence.mean_answer_relevancy", 0.7, "≥ 0.75", ""),
        ("fail", "groundedness.groundedness", 0.25, "≥ 0.75", ""),
        ("fail", "pii_leakage.failures", 1.0, "≤ 0.5", ""),
        ("fail", "pii_leakage.passes", 0.0, "≥ 0.5", ""),
        ("evaluator failed", "toxicity", None, "", "out of memory"),
        ("pass", "answer_relevancy_sentence.answer_relevancy", 0.9, "≥ 0.75", ""),
        ("pass", "sentence_similarity.cosine", 0.8, "≥ 0.8", ""),
        ("no threshold", "readability.flesch_reading_ease", 70.0, "", ""),
        ("not applicable", "bleu", None, "", "missing expected"),
    ]


def test_the_explanation_of_a_score_stands_beside_it(shown: Shown) -> None:
    said = {row["metric"]: row["explanation"] for row in shown.rows("table Scores A")}
    assert said["groundedness.groundedness"] == "Costs 7."
    assert said["readability.flesch_reading_ease"] == "", "it is of an older score"
    assert {said["pii_leakage.passes"], said["bleu"]} == {""}


def test_without_an_id_the_newest_traces_are_listed_and_the_first_is_shown(shown: Shown) -> None:
    listed = shown.rows("table Traces A", "")
    assert [row["trace_id"] for row in listed] == ["t3", "t2", "t1"]
    assert [(row["failed metrics"], row["of judged"]) for row in listed] == [(0, 1), (1, 1), (2, 4)]
    assert listed[2]["worst metric"] == "pii_leakage.passes"  # 0 of 0.5; groundedness has 0.25 of 0.75
    assert listed[2]["question"] == QUESTION
    assert {row["name"]: row["value"] for row in shown.rows("table Facts A", "")}["trace"] == "t3"
    assert [row["trace_id"] for row in shown.rows("table Traces A", "", errors="only")] == ["t3"]
    assert [row["trace_id"] for row in shown.rows("table Traces A", "", environment=["prod"])] == ["t2", "t1"]
    worst = shown.rows("table Traces A", "", worst="groundedness.groundedness")
    assert [row["trace_id"] for row in worst] == ["t1", "t3"]
    facts = shown.rows("table Facts A", "", worst="groundedness.groundedness")
    assert {row["name"]: row["value"] for row in facts}["trace"] == "t1"


def test_the_newest_trace_is_one_whose_rows_are_all_stored(shown: Shown) -> None:
    """The latest seconds of a range are left out, so that every panel shows the same trace; at most a twentieth."""
    (row,) = [row for row in shown.rows("table Traces A", "") if row["trace_id"] == "t3"]
    time = datetime.fromisoformat(str(row["time"])).replace(tzinfo=UTC)
    for end, newest in ((time + timedelta(seconds=1), "t2"), (time + timedelta(seconds=16), "t3")):
        assert shown.rows("table Traces A", "", end)[0]["trace_id"] == newest
        assert shown.rows("table Facts A", "", end)[0]["value"] == newest


def test_a_named_trace_is_found_whatever_the_filters_and_however_old(shown: Shown) -> None:
    (only,) = shown.rows("table Traces A", " old ", environment=["staging"], model=["m9"])
    assert only["trace_id"] == "old"
    assert shown.rows("table Question A", "old")[0]["text"] == QUESTION
    for trace_id, run in (("t4", "live"), ("t5", "live"), ("t1", "replayed"), ("nobody", "live")):
        for where in shown.queries:
            if not where.startswith("variable"):
                assert shown.rows(where, trace_id, run=run) == [], where
    assert shown.rows("table Facts A", "t4", run="replayed")


def test_facts_labels_versions_and_problems(shown: Shown) -> None:
    facts = {row["name"]: row["value"] for row in shown.rows("table Facts A")}
    assert (facts["latency, s"], facts["segments"], facts["time"]) == (
        "1.5",
        "tenant = acme",
        "2026-03-01 12:01:00 UTC",
    )
    assert "error" not in facts
    (label,) = shown.rows("table Labels A")
    assert (label["author"], label["thumbs"], label["comment"]) == ("kim", "down", "wrong price")
    assert {row["fingerprint"] for row in shown.rows("table Versions of evaluators A")} == {"f1"}
    assert [row["problem_id"] for row in shown.rows("table Problems that name this trace A")] == ["p1"]


def test_links_to_other_tools_are_filled_in(shown: Shown) -> None:
    at = round((NOON + timedelta(minutes=1)).timestamp() * 1000)
    assert [(row["tool"], row["url"]) for row in shown.rows("table Open in A")] == [
        ("Langfuse", f"https://lf.example/helpdesk/traces/t1?env=prod&at={at}"),
        ("Tempo", "/explore?q=t1"),
    ]
    assert "Open in" not in {panel["title"] for panel in panels(build(load())["trace"])}
