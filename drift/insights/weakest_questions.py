"""The questions that failed most often in a period. An insight points at traces; it never holds what users wrote.

One is told of only where it fails more often than all others together, for sure though so many questions were looked
at. The same question is one with the same hash (`traces.question_hash`), whatever its case and spacing. Where no hash
is stored nothing is said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragtide.drift.insights.failing_sample import select_failed_metrics, with_bounds
from ragtide.drift.insights.model import Insight, Period
from ragtide.drift.rules.model import Rule
from ragtide.drift.settings import JobSettings
from ragtide.drift.stats.proportions import CONFIDENCE, Share, fisher_p, wilson, z_score
from ragtide.drift.text import scope_label
from ragtide.sinks.clickhouse.database import Database

TYPE = "weak_point"
_EXAMPLES = 10
_ALPHA = 0.05
_Z = z_score(CONFIDENCE)
_Z2 = _Z**2


@dataclass(frozen=True, slots=True)
class WeakQuestion:
    """One question, by its `traces.question_hash`."""

    app: str
    environment: str
    question_hash: str
    share: Share
    rest: Share  # of all other questions
    p: float  # adjusted for all questions that were asked often enough
    models: Share  # that failed on it, of those that were asked
    hours: Share
    metrics: Mapping[str, int]
    examples: tuple[str, ...]


def weakest_questions(
    database: Database,
    app: str,
    rules: Mapping[str, Rule],
    settings: JobSettings,
    period: Period,
) -> list[WeakQuestion]:
    """Questions asked often enough in the period that fail more often for sure, the weakest first.

    By the low end of the share's interval, so that three of three does not go before ninety of a hundred.
    """
    times = "time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"
    rows = database.rows(
        f"""
        {with_bounds(rules)}
        SELECT *
        FROM (
            SELECT *, sum(asked) OVER here AS all_asked, sum(failed) OVER here AS all_failed,
                countIf(asked >= {{min_traces:UInt64}}) OVER here AS tried
            FROM (
                SELECT environment, question_hash, count() AS asked, countIf(notEmpty(bad)) AS failed,
                    uniqExact(some_model) AS models, uniqExactIf(some_model, notEmpty(bad)) AS failing_models,
                    uniqExact(hour) AS hours, uniqExactIf(hour, notEmpty(bad)) AS failing_hours,
                    sumMap(arrayMap(m -> m, bad), arrayMap(m -> toUInt64(1), bad)) AS by_metric,
                    arraySlice(arrayMap(one -> one.2, arrayReverseSort(
                        groupArrayIf((length(bad), trace_id), notEmpty(bad)))), 1, {_EXAMPLES}) AS worst
                FROM ({select_failed_metrics(rules)}
                ) AS scored
                INNER JOIN (
                    SELECT environment, trace_id, question_hash, toStartOfHour(time) AS hour FROM traces FINAL
                    WHERE run_id = 'live' AND app = {{app:String}} AND {times} AND question_hash != ''
                ) AS asked_questions USING (environment, trace_id)
                GROUP BY environment, question_hash
            )
            WINDOW here AS (PARTITION BY environment)
        )
        WHERE asked >= {{min_traces:UInt64}} AND failed > 0
        ORDER BY environment,
            (failed + {_Z2} / 2 - {_Z} * sqrt(failed * (asked - failed) / asked + {_Z2} / 4)) / (asked + {_Z2}) DESC,
            failed DESC, question_hash
        LIMIT {{most:UInt64}} BY environment
        """,
        {
            "app": app,
            "start": period.start,
            "end": period.end,
            "min_traces": settings.insights_min_traces,
            "most": settings.insights_questions,
        },
    )
    found = [_weak_question(app, row) for row in rows]
    return [one for one in found if one.p <= _ALPHA]


def _weak_question(app: str, row: Mapping[str, Any]) -> WeakQuestion:
    share = Share(row["failed"], row["asked"])
    rest = Share(row["all_failed"] - share.hits, row["all_asked"] - share.n)
    return WeakQuestion(
        app=app,
        environment=row["environment"],
        question_hash=row["question_hash"],
        share=share,
        rest=rest,
        p=min(1.0, fisher_p(share, rest) * row["tried"]),  # Bonferroni: only the weakest are known here
        models=Share(row["failing_models"], row["models"]),
        hours=Share(row["failing_hours"], row["hours"]),
        metrics=dict(zip(*row["by_metric"], strict=True)),
        examples=tuple(row["worst"]),
    )


def question_insight(found: WeakQuestion, rank: int) -> Insight:
    """The insight about the question of that rank in its app and environment."""
    failing = sorted(found.metrics.items(), key=lambda item: (-item[1], item[0]))
    share, rest, models, hours = found.share, found.rest, found.models, found.hours
    return Insight(
        type=TYPE,
        app=found.app,
        environment=found.environment,
        identity=(rank,),
        description=(
            f"{scope_label(found.app, found.environment)}: a question that was asked {share.n} times failed "
            f"{share.hits} times, all others {rest.hits} of {rest.n}; on {models.hits} of {models.n} models and in "
            f"{hours.hits} of {hours.n} hours, most often in {', '.join(name for name, _ in failing[:3])} "
            f"(rank {rank} of the weakest questions)."
        ),
        attributes={
            "kind": "question",
            "rank": rank,
            "question_hash": found.question_hash,
            "asked": share.n,
            "failed": share.hits,
            "failed_share": share.value,
            "failed_share_interval": list(wilson(share)),
            "rest_asked": rest.n,
            "rest_failed": rest.hits,
            "p": found.p,
            "models": models.n,
            "failing_models": models.hits,
            "hours": hours.n,
            "failing_hours": hours.hits,
            "metrics": dict(failing),
        },
        examples=found.examples,
        actions=(
            "Read the example traces: is the answer in the index at all, and is it retrieved?",
            "Add or rewrite the document that should answer it, then replay the examples.",
        ),
    )
