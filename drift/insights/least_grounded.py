"""Find the answers with the least grounded sentences: trace ids and character offsets, never the text."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.model import IN_PERIOD, AppEnvironment, Insight, insight, percent_estimate, share_estimate
from ragtide.drift.rules import bound_parameters
from ragtide.drift.stats import Share

EVALUATOR, KEY = "groundedness", "groundedness"
METRIC = f"{EVALUATOR}.{KEY}"
MIN_ANSWERS = 30
_MAX_SENTENCES = 10
_EVIDENCE_KIND = "least_grounded"  # of the evidence that points at the sentence
_SCORED_ROWS = (
    f"run_id = 'live' AND app = {{app:String}} AND evaluator = '{EVALUATOR}' AND status = 'scored' AND {IN_PERIOD}"
)


@insight(reads=AppData)
def least_grounded(app: AppData) -> Iterator[Insight]:
    """Find the ten worst answers of each environment below the rule's minimum, if any are."""
    rule = app.rules.get(METRIC)
    if rule is None or rule.min is None:
        return
    min_value = bound_parameters(rule)["least"]
    rows = app.database.rows(
        f"""
        SELECT environment, count() AS n, countIf(value < {{least:Float64}}) AS below,
            groupArraySorted({_MAX_SENTENCES})((value, trace_id)) AS worst
        FROM (
            SELECT environment, trace_id, metrics['{KEY}'] AS value FROM scores FINAL
            WHERE {_SCORED_ROWS} AND mapContains(metrics, '{KEY}')
        )
        GROUP BY environment HAVING n >= {MIN_ANSWERS} AND below > 0 ORDER BY environment""",
        {"app": app.app, **app.period.bound, "least": min_value},
    )
    for row in rows:
        where = AppEnvironment(app.app, row["environment"])
        traces = [trace_id for value, trace_id in row["worst"] if value < min_value]
        positions = _sentence_positions(app, where, traces)
        yield _insight(where, rule.min, Share(row["below"], row["n"]), traces, positions)


def _sentence_positions(app: AppData, where: AppEnvironment, traces: list[str]) -> dict[str, Mapping[str, Any]]:
    """Read, by trace, the sentence that its evidence points at: character offsets in the answer, and its support."""
    rows = app.database.rows(
        f"SELECT trace_id, evidence FROM scores FINAL WHERE {_SCORED_ROWS} AND environment = {{environment:String}} "
        "AND trace_id IN {traces:Array(String)}",
        {**where._asdict(), **app.period.bound, "traces": traces},
    )
    return {
        row["trace_id"]: {"start": one["start"], "end": one["end"], "support": one.get("score")}
        for row in rows
        for one in json.loads(row["evidence"] or "[]")
        if one.get("kind") == _EVIDENCE_KIND and one.get("field") == "answer"
    }


def _insight(
    where: AppEnvironment,
    min_value: float,
    below: Share,
    traces: list[str],
    positions: Mapping[str, Mapping[str, Any]],
) -> Insight:
    return Insight(
        type="accuracy",
        where=where,
        identity=("least_grounded",),
        message=(
            f"{below.hits:,} of {below.n:,} answers ({percent_estimate(below)}) contain a sentence with support below "
            f"{min_value:.3g} in the contexts. The attributes locate the {len(traces)} least grounded sentences"
        ),
        figures={
            "kind": "least_grounded",
            "metric": METRIC,
            "threshold": min_value,
            "answers": below.n,
            "below": below.hits,
            **share_estimate("below_share", below),
            "sentences": [
                {"trace_id": trace_id, **positions[trace_id]} for trace_id in traces if trace_id in positions
            ],
        },
        examples=traces,
        actions=(
            "Read the sentences next to their contexts. Is the fact in the index, and was it retrieved?",
            "If it was not retrieved, check retrieval. If it is not in the index, make the prompt require the "
            "application to say so.",
        ),
    )
