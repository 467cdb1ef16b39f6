"""Find the questions that failed most often in a period, by trace id and hash: an insight never holds their words.

Two questions are the same if `traces.question_hash` is, whatever their case and spacing; without a stored hash there is
no insight."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.failing_sample import rule_bounds_query, select_failed_metrics
from ragtide.drift.insights.model import IN_PERIOD, AppEnvironment, Insight, insight, share_estimate
from ragtide.drift.insights.weak_parts import ALPHA, READ, TYPE, rates_message, without
from ragtide.drift.stats import CONFIDENCE, Share, fisher_p, z_score

_EXAMPLES = 10
_Z = z_score(CONFIDENCE)
_Z2 = _Z**2


@insight(reads=AppData)
def weakest_questions(app: AppData) -> Iterator[Insight]:
    """Questions asked often enough that fail more often than all others, the weakest first.

    By the low end of the share's interval, so that three of three does not go before ninety of a hundred.
    """
    rows = app.database.rows(
        f"""
        {rule_bounds_query(app.rules)}
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
                FROM ({select_failed_metrics(app.rules)}
                ) AS scored
                INNER JOIN (
                    SELECT environment, trace_id, question_hash, toStartOfHour(time) AS hour FROM traces FINAL
                    WHERE run_id = 'live' AND app = {{app:String}} AND {IN_PERIOD} AND question_hash != ''
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
            "app": app.app,
            **app.period.bound,
            "min_traces": app.settings.insights_min_traces,
            "most": app.settings.insights_questions,
        },
    )
    ranks: Counter[str] = Counter()
    for row in rows:
        share = Share(row["failed"], row["asked"])
        rest = without(Share(row["all_failed"], row["all_asked"]), share)
        p = min(1.0, fisher_p(share, rest) * row["tried"])  # Bonferroni: only the weakest are known here
        if p <= ALPHA:
            ranks[row["environment"]] += 1
            yield _insight(app.app, row, ranks[row["environment"]], share, rest, p)


def _insight(app: str, row: Mapping[str, Any], rank: int, share: Share, rest: Share, p: float) -> Insight:
    by_metric = sorted(zip(*row["by_metric"], strict=True), key=lambda item: (-item[1], item[0]))
    counts = {name: row[name] for name in ("models", "failing_models", "hours", "failing_hours")}
    return Insight(
        type=TYPE,
        where=AppEnvironment(app, row["environment"]),
        identity=(rank,),
        message=(
            f"number {rank} of the weakest questions {rates_message(share, rest)}. "
            f"It failed on {row['failing_models']} of {row['models']} models and in {row['failing_hours']} of "
            f"{row['hours']} hours, mostly in {', '.join(name for name, _ in by_metric[:3])}"
        ),
        figures={
            "kind": "question",
            "rank": rank,
            "question_hash": row["question_hash"],
            "asked": share.n,
            "failed": share.hits,
            **share_estimate("failed_share", share),
            "rest_asked": rest.n,
            "rest_failed": rest.hits,
            "p": p,
            **counts,
            "metrics": dict(by_metric),
        },
        examples=row["worst"],
        actions=(READ, "Add or rewrite the document that should answer it, then replay the examples."),
    )
