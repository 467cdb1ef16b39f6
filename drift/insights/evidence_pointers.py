"""Find what the evidence of evaluators points at: ungrounded sentences and unsound artifacts.

Insights give trace ids, character offsets and counts, never the text."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ragtide.drift.insights.model import Insight, Period
from ragtide.drift.rules.model import Rule
from ragtide.drift.rules.queries import bound_parameters
from ragtide.drift.stats.proportions import Share, wilson
from ragtide.drift.text import percent, scope_label
from ragtide.sinks.clickhouse.database import Database

GROUNDEDNESS, GROUNDEDNESS_KEY = "groundedness", "groundedness"
GROUNDEDNESS_METRIC = f"{GROUNDEDNESS}.{GROUNDEDNESS_KEY}"
MIN_ANSWERS = 30  # answers
_MAX_SENTENCES = 10
_EVIDENCE_KIND = "least_grounded"  # of the evidence that points at the sentence
_SCORED_ROWS = (
    "run_id = 'live' AND app = {app:String} AND evaluator = {evaluator:String} AND status = 'scored' "
    "AND time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"
)


def least_grounded(database: Database, app: str, rule: Rule, period: Period) -> list[Insight]:
    """The ten worst of each environment of the app below the rule's line, and how many there are; none: no finding."""
    parameters: dict[str, Any] = {"app": app, "evaluator": GROUNDEDNESS, "start": period.start, "end": period.end}
    rows = database.rows(
        f"""
        SELECT environment, count() AS n, countIf(value < {{least:Float64}}) AS below,
            groupArraySorted({_MAX_SENTENCES})((value, trace_id)) AS worst
        FROM (
            SELECT environment, trace_id, metrics['{GROUNDEDNESS_KEY}'] AS value FROM scores FINAL
            WHERE {_SCORED_ROWS} AND mapContains(metrics, '{GROUNDEDNESS_KEY}')
        )
        GROUP BY environment HAVING n >= {MIN_ANSWERS} AND below > 0 ORDER BY environment""",
        {**parameters, "least": bound_parameters(rule)["least"]},
    )
    found = []
    for row in rows:
        traces = [trace_id for value, trace_id in row["worst"] if value < bound_parameters(rule)["least"]]
        positions = _sentence_positions(database, {**parameters, "environment": row["environment"], "traces": traces})
        found.append(
            _grounding_insight(app, row["environment"], rule, Share(row["below"], row["n"]), traces, positions)
        )
    return found


def _sentence_positions(database: Database, parameters: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By trace, of the sentence that its evidence points at: character offsets in the answer, and its support."""
    rows = database.rows(
        f"SELECT trace_id, evidence FROM scores FINAL WHERE {_SCORED_ROWS} AND environment = {{environment:String}} "
        "AND trace_id IN {traces:Array(String)}",
        parameters,
    )
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        for one in json.loads(row["evidence"] or "[]"):
            if one.get("kind") == _EVIDENCE_KIND and one.get("field") == "answer":
                found[row["trace_id"]] = {"start": one["start"], "end": one["end"], "support": one.get("score")}
    return found


def _grounding_insight(
    app: str,
    environment: str,
    rule: Rule,
    below: Share,
    traces: list[str],
    positions: Mapping[str, Mapping[str, Any]],
) -> Insight:
    reach = wilson(below)
    return Insight(
        type="accuracy",
        app=app,
        environment=environment,
        identity=("least_grounded",),
        description=(
            f"{scope_label(app, environment)}: {below.hits} of {below.n} answers have a sentence whose support in the "
            f"contexts is below {rule.min:.3g} ({percent(reach.low)} to {percent(reach.high)} of answers); the "
            f"attributes say where the {len(traces)} least grounded sentences stand."
        ),
        attributes={
            "kind": "least_grounded",
            "metric": GROUNDEDNESS_METRIC,
            "threshold": rule.min,
            "answers": below.n,
            "below": below.hits,
            "below_share": below.value,
            "below_share_interval": list(reach),
            "sentences": [
                {"trace_id": trace_id, **positions[trace_id]} for trace_id in traces if trace_id in positions
            ],
        },
        examples=traces,
        actions=(
            "Read the sentences beside their contexts: is what they say in the index, and was it retrieved?",
            "Where it was not retrieved, look at retrieval; where it was never there, have the prompt demand that the "
            "application says so.",
        ),
    )


AGENT_SANITY, AGENT_SANITY_KEY = "agent_sanity", "agent_sanity"
AGENT_SANITY_METRIC = f"{AGENT_SANITY}.{AGENT_SANITY_KEY}"
MIN_TRACES = 10  # traces with artifacts
_TOTAL_PART = "artifacts"  # the part that counts them all; every other one is a fault
_MAX_TRACES = 10


def unsound_artifacts(database: Database, app: str, period: Period) -> list[Insight]:
    """One finding for each environment of the app in which an artifact is unsound."""
    rows = database.rows(
        f"""
        SELECT environment, count() AS n, countIf(value < 1) AS unsound, sumMap(parts_of) AS counted,
            arrayMap(one -> one.2, groupArraySortedIf({_MAX_TRACES})((value, trace_id), value < 1)) AS worst
        FROM (
            SELECT environment, trace_id, metrics['{AGENT_SANITY_KEY}'] AS value, CAST(parts, 'Map(String,
            Float64)') AS parts_of
            FROM scores FINAL
            WHERE run_id = 'live' AND app = {{app:String}} AND evaluator = {{evaluator:String}} AND status = 'scored'
                AND time >= {{start:DateTime64(3, 'UTC')}} AND time < {{end:DateTime64(3, 'UTC')}}
        )
        GROUP BY environment HAVING n >= {MIN_TRACES} AND unsound > 0 ORDER BY environment""",
        {"app": app, "evaluator": AGENT_SANITY, "start": period.start, "end": period.end},
    )
    return [_artifact_insight(app, row) for row in rows]


def _artifact_insight(app: str, row: dict[str, Any]) -> Insight:
    faults = Counter({name: int(n) for name, n in row["counted"].items() if name != _TOTAL_PART and n})
    judged, traces = int(row["counted"].get(_TOTAL_PART, 0)), Share(row["unsound"], row["n"])
    reach = wilson(traces)
    most = ", ".join(f"{name} {n} times" for name, n in faults.most_common(3))
    return Insight(
        type="data",
        app=app,
        environment=row["environment"],
        identity=("unsound_artifacts",),
        description=(
            f"{scope_label(app, row['environment'])}: {faults.total()} of {judged} artifacts are unsound ({most}), in "
            f"{traces.hits} of {traces.n} traces ({percent(reach.low)} to {percent(reach.high)} of them)."
        ),
        attributes={
            "kind": "unsound_artifacts",
            "metric": AGENT_SANITY_METRIC,
            "artifacts": judged,
            "faults": dict(faults.most_common()),
            "traces": traces.n,
            "unsound_traces": traces.hits,
            "unsound_share": traces.value,
            "unsound_share_interval": list(reach),
        },
        examples=row["worst"],
        actions=(
            "Open the artifacts of the example traces; the evidence of their scores names each with its fault.",
            "Have the agent check what it wrote before it ends: that it parses, that files it declares are there.",
        ),
    )
