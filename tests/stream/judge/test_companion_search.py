"""Companions that are found by correlation, in scores on the real engine."""

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ragtide.evaluators import registry
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ScoreRow
from ragtide.stream.companion_search import with_found_companions
from ragtide.stream.settings.loader import Settings
from tests.drift.world import score_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

JUDGED = "answer_relevancy.answer_relevancy"
TRACES = 400


def settings(**judge: Any) -> Settings:
    endpoints = {"local": {"url": "http://judge/v1", "model": "m"}}
    return Settings.model_validate(
        {"evaluators": {"judge": {"endpoints": endpoints, **judge}}, "sampling": {"lanes": {"judge": 0.1}}}
    )


def found(database: Database, chosen: Settings) -> Mapping[str, str]:
    return with_found_companions(chosen, registry.load(chosen.evaluators), database).evaluators.judge.companions


def rows() -> Iterator[ScoreRow]:
    """`rouge_l` agrees with the judge (0.8), `bleu_1` less (0.4), readability not at all; `n_words` only on few traces.

    A row that was replaced says the opposite.
    """
    rng, now = np.random.default_rng(3), datetime.now(UTC) - timedelta(hours=1)
    shared, *own = rng.normal(size=(5, TRACES))
    mixed = {rho: rho * shared + (1 - rho**2) ** 0.5 * own[at] for at, rho in enumerate((0.8, 0.4, 0.0))}
    for at in range(TRACES):
        time, trace_id = now + timedelta(seconds=at), f"t{at}"
        yield score_row(time, trace_id, {"answer_relevancy": shared[at]}, evaluator="answer_relevancy", version=2)
        yield score_row(time, trace_id, {"rouge_l": mixed[0.8][at]}, evaluator="rouge", version=2)
        yield score_row(time, trace_id, {"rouge_l": -9 * shared[at]}, evaluator="rouge", version=1)
        yield score_row(time, trace_id, {"bleu_1": mixed[0.4][at]}, evaluator="bleu", version=2)
        yield score_row(time, trace_id, {"flesch_reading_ease": mixed[0.0][at]}, evaluator="readability", version=2)
        if at < 20:
            yield score_row(time, trace_id, {"cosine": shared[at]}, evaluator="sari", version=2)


@pytest.fixture(scope="module")
def database(clickhouse_server: EmbeddedClickHouse) -> Iterator[Database]:
    with fresh_database(clickhouse_server) as database:
        database.insert("scores", list(rows()))
        yield database


def test_the_metric_that_agrees_best_becomes_the_companion(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert found(database, settings()) == {JUDGED: "rouge.rouge_l"}
    (line,) = [line for line in caplog.messages if line.startswith("companion of")]
    assert line == f"companion of {JUDGED}: rouge.rouge_l (correlation 0.79, at least 0.75, on 400 traces)"


@pytest.mark.parametrize(
    ("evaluators", "companion"),
    [
        ({"disabled": ["rouge"]}, "bleu.bleu_1"),
        ({"disabled": ["rouge", "bleu"]}, None),  # nothing else agrees, or on too few traces
        ({"disabled": ["answer_relevancy"]}, None),
    ],
)
def test_only_evaluators_that_run_and_agree_are_companions(
    database: Database, evaluators: Mapping[str, Any], companion: str | None
) -> None:
    chosen = settings()
    chosen = chosen.model_copy(update={"evaluators": chosen.evaluators.model_copy(update=evaluators)})
    assert found(database, chosen).get(JUDGED) == companion


@pytest.mark.parametrize("named", ["", "text_quality.f1"])
def test_what_the_settings_name_is_kept(database: Database, named: str) -> None:
    assert found(database, settings(companions={JUDGED: named})) == {JUDGED: named}


def test_nothing_is_looked_for_where_it_is_off_or_every_trace_is_judged(database: Database) -> None:
    assert found(database, settings(finds_companions=False)) == {}
    assert found(database, settings().model_copy(update={"sampling": Settings().sampling})) == {}


def test_traces_that_stand_for_others_count_more(clickhouse_server: EmbeddedClickHouse) -> None:
    """Two traces of a hundred weigh so much that no interval is left."""
    with fresh_database(clickhouse_server) as database:
        made = [row for row in rows() if row.evaluator in ("answer_relevancy", "rouge")]
        database.insert(
            "scores", [row._replace(weight=5000.0 if row.trace_id in ("t1", "t2") else 1.0) for row in made]
        )
        assert found(database, settings()) == {}


def test_a_metric_that_differs_between_applications_only_is_no_companion(
    clickhouse_server: EmbeddedClickHouse,
) -> None:
    rng, now = np.random.default_rng(5), datetime.now(UTC) - timedelta(hours=1)
    with fresh_database(clickhouse_server) as database:
        made = []
        for at in range(TRACES):
            level, app = 10.0 * (at % 2), f"app{at % 2}"
            for evaluator, key in (("answer_relevancy", "answer_relevancy"), ("rouge", "rouge_l")):
                metrics = {key: level + rng.normal()}
                made.append(score_row(now + timedelta(seconds=at), f"t{at}", metrics, evaluator=evaluator, app=app))
        database.insert("scores", made)
        assert found(database, settings()) == {}


@pytest.mark.parametrize("error", [Transient("ClickHouse is away"), ConfigError("no right to read scores")])
def test_without_scores_only_named_companions_are_used(
    database: Database, error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise error

    monkeypatch.setattr(database, "rows", away)
    assert found(database, settings(companions={"ragas.ragas": ""})) == {"ragas.ragas": ""}
    assert any(f"only named ones are used: {error}" in line for line in caplog.messages)
