"""The answer sentences that rest least on what was retrieved: where they stand, and never what they say."""

import json
from collections.abc import Mapping
from typing import Any

from drift.insights.insight import Finding, Period
from drift.insights.shares import Share, wilson
from drift.phrases import percent, whereabouts
from drift.rules.records import lines
from drift.rules.series import Rule
from sinks.clickhouse.database import Database

EVALUATOR, KEY = "groundedness", "groundedness"
METRIC = f"{EVALUATOR}.{KEY}"
LEAST = 30  # answers
_MOST = 10
_KIND = "least_grounded"  # of the evidence that points at the sentence
_SCORED = (
    "run_id = 'live' AND app = {app:String} AND evaluator = {evaluator:String} AND status = 'scored' "
    "AND time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"
)


def least_grounded(database: Database, app: str, rule: Rule, period: Period) -> list[Finding]:
    """The ten worst of each environment of the app below the rule's line, and how many there are; none: no finding."""
    asked: dict[str, Any] = {"app": app, "evaluator": EVALUATOR, "start": period.start, "end": period.end}
    rows = database.rows(
        f"""
        SELECT environment, count() AS n, countIf(value < {{least:Float64}}) AS below,
            groupArraySorted({_MOST})((value, trace_id)) AS worst
        FROM (
            SELECT environment, trace_id, metrics['{KEY}'] AS value FROM scores FINAL
            WHERE {_SCORED} AND mapContains(metrics, '{KEY}')
        )
        GROUP BY environment HAVING n >= {LEAST} AND below > 0 ORDER BY environment""",
        {**asked, "least": lines(rule)["least"]},
    )
    found = []
    for row in rows:
        traces = [trace_id for value, trace_id in row["worst"] if value < lines(rule)["least"]]
        places = _places(database, {**asked, "environment": row["environment"], "traces": traces})
        found.append(_finding(app, row["environment"], rule, Share(row["below"], row["n"]), traces, places))
    return found


def _places(database: Database, asked: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By trace, of the sentence that its evidence points at: character offsets in the answer, and its support."""
    rows = database.rows(
        f"SELECT trace_id, evidence FROM scores FINAL WHERE {_SCORED} AND environment = {{environment:String}} "
        "AND trace_id IN {traces:Array(String)}",
        asked,
    )
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        for one in json.loads(row["evidence"] or "[]"):
            if one.get("kind") == _KIND and one.get("field") == "answer":
                found[row["trace_id"]] = {"start": one["start"], "end": one["end"], "support": one.get("score")}
    return found


def _finding(
    app: str,
    environment: str,
    rule: Rule,
    below: Share,
    traces: list[str],
    places: Mapping[str, Mapping[str, Any]],
) -> Finding:
    reach = wilson(below)
    return Finding(
        type="accuracy",
        app=app,
        environment=environment,
        identity=("least_grounded",),
        description=(
            f"{whereabouts(app, environment)}: {below.hits} of {below.n} answers have a sentence whose support in the "
            f"contexts is below {rule.least:.3g} ({percent(reach.low)} to {percent(reach.high)} of answers); the "
            f"attributes say where the {len(traces)} least grounded sentences stand."
        ),
        attributes={
            "kind": "least_grounded",
            "metric": METRIC,
            "threshold": rule.least,
            "answers": below.n,
            "below": below.hits,
            "below_share": below.value,
            "below_share_interval": list(reach),
            "sentences": [{"trace_id": trace_id, **places[trace_id]} for trace_id in traces if trace_id in places],
        },
        examples=traces,
        actions=(
            "Read the sentences beside their contexts: is what they say in the index, and was it retrieved?",
            "Where it was not retrieved, look at retrieval; where it was never there, have the prompt demand that the "
            "application says so.",
        ),
    )
