"""The dashboards over sample rows: their queries run on the real engine."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from ragtide.dashboards.build import build
from ragtide.drift.anomalies.expected_levels import TABLE as EXPECTED_LEVELS
from ragtide.drift.robustness.flip_pairs import FlipRow
from ragtide.drift.robustness.repeated_questions import RepeatedQuestionsRow
from ragtide.drift.routes import Route
from ragtide.drift.settings import Objective, RuleSettings
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import EmbeddingRow
from tests.dashboards.lint import defaults, queries
from tests.dashboards.macros import Choice, expanded
from tests.dashboards.sample_details import METRIC, before, confusion, expected_levels, scores, verdicts
from tests.dashboards.sample_rows import APP, NOON, asked, flip, insight, ordinary, problems, repeated_questions
from tests.infra.fresh_database import fresh_database
from tests.label_rows import label_row

ALL: dict[str, Choice] = {
    "run": "live",
    "app": APP,
    "environment": ["$__all"],
    "model": ["$__all"],
    "standard": ["$__all"],
    "resolution": "0",
    "metric": METRIC,
    "segment": "tenant",
    "score": "50",
    "trace_id": "t2",
    "problem": "a",
}
END = NOON + timedelta(minutes=10)
OBJECTIVES = (
    Objective(name="few-errors", metric="operations.error", max=0.5, target=0.5),
    Objective(name="few-errors", metric="operations.error", max=0.5, target=0.9, app="another"),
)
ROUTES = (Route(app="help*", owner="search-team"), Route(type="accuracy", owner="quality"))


class Shown:
    """The dashboards over the ten minutes from noon; the application's where none is named."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.documents = build(load(), database=database.name, rules=RuleSettings(objectives=OBJECTIVES), routes=ROUTES)
        self.boards = {name: dict(queries(document)) for name, document in self.documents.items()}
        self.queries = self.boards["application"]

    def rows(
        self,
        where: str,
        chosen: Mapping[str, Choice] | None = None,
        interval_s: int = 60,
        end: datetime = END,
        board: str = "application",
    ) -> list[dict[str, Any]]:
        choices = {**defaults(self.documents[board]), **ALL, **(chosen or {})}
        sql = expanded(self.boards[board][where], NOON, end, interval_s, choices)
        return self.database.rows(sql)

    def row(self, where: str, chosen: Mapping[str, Choice] | None = None, board: str = "application") -> dict[str, Any]:
        (row,) = self.rows(where, chosen, board=board)
        return row


def perturbed() -> Iterator[FlipRow]:
    """Of 40 pairs 6 became worse and 2 better by a strong paraphrase; by a typo of 10 none could be compared."""
    outcomes = ["worse"] * 6 + ["better"] * 2 + ["same"] * 32
    for number, outcome in enumerate(outcomes):
        yield flip("answer.good", number, "paraphrase strong", outcome)
    for number in range(10):
        yield flip("answer.good", 100 + number, "typo 0.1", "unknown", value=None)
    yield flip("answer.good", 200, "typo 0.1", "worse", app="another")
    yield flip("answer.good", 201, "typo 0.1", "worse", time=NOON - timedelta(hours=1))


def repeated() -> Iterator[RepeatedQuestionsRow]:
    """Two looks at what answers say and one at their scores; and what is of no look of this application and time."""
    yield repeated_questions("answers.agreement", 1, 30, 3)
    yield repeated_questions("answers.agreement", 5, 40, 8)
    yield repeated_questions("groundedness.groundedness", 5, 0, 0, pairs=[])
    yield repeated_questions("answers.agreement", 6, 50, 50, app="another")
    yield repeated_questions("answers.agreement", -60, 50, 50, model="m2")


def placed() -> Iterator[EmbeddingRow]:
    """Two topics in two minutes, one question placed by nobody; and what is not of this run or application."""
    for number, (minute, topic) in enumerate([(0, "csv"), (0, "csv"), (0, "other"), (1, "csv"), (1, "json"), (1, "")]):
        yield asked(number, minute, topic)
    yield asked(10, 0, "csv", app="another")
    yield asked(11, 0, "csv", run_id="replayed")
    yield asked(12, 0, "csv", is_deleted=1)


@contextmanager
def showing(server: EmbeddedClickHouse) -> Iterator[Shown]:
    kept = dict.fromkeys(
        ("windows_minute_days", "windows_hour_days", "embeddings_days", "traces_days", "texts_days"), 100_000
    )  # fixed dates
    with fresh_database(server, **kept) as database:
        database.insert("windows", [*ordinary(), *confusion(), *before()])
        database.insert("problem_events", list(problems()))
        database.insert(
            "insights", [insight(), insight()._replace(insight_id="gone", description="nothing fails", withdrawn=1)]
        )
        database.insert("flips", list(perturbed()))
        database.insert("repeated_questions", list(repeated()))
        database.insert("embeddings", list(placed()))
        database.insert("scores", list(scores()))
        thumbs = ["down", "up", "up", "up"]
        how: dict[str, Any] = {"score": 3.0, "sample_rate": 0.5, "sample_evaluator": "groundedness"}
        database.insert("labels", [label_row(f"t{at}", at, thumbs=one, **how) for at, one in enumerate(thumbs)])
        database.insert("verdicts", list(verdicts()))
        database.insert(EXPECTED_LEVELS, list(expected_levels()))
        database.insert("watermarks", [WatermarkRow("fast", "rag.traces", END + timedelta(seconds=45))])
        yield Shown(database)
