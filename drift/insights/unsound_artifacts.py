"""What is wrong with the artifacts that agents left behind: counts by fault, and the traces with the most of it."""

from collections import Counter
from typing import Any

from drift.insights.insight import Finding, Period
from drift.insights.shares import Share, wilson
from drift.phrases import percent, whereabouts
from sinks.clickhouse.database import Database

EVALUATOR, KEY = "agent_sanity", "agent_sanity"
METRIC = f"{EVALUATOR}.{KEY}"
LEAST = 10  # traces with artifacts
_JUDGED = "artifacts"  # the part that counts them all; every other one is a fault
_MOST = 10


def unsound_artifacts(database: Database, app: str, period: Period) -> list[Finding]:
    """One finding for each environment of the app in which an artifact is unsound."""
    rows = database.rows(
        f"""
        SELECT environment, count() AS n, countIf(value < 1) AS unsound, sumMap(parts_of) AS counted,
            arrayMap(one -> one.2, groupArraySortedIf({_MOST})((value, trace_id), value < 1)) AS worst
        FROM (
            SELECT environment, trace_id, metrics['{KEY}'] AS value, CAST(parts, 'Map(String, Float64)') AS parts_of
            FROM scores FINAL
            WHERE run_id = 'live' AND app = {{app:String}} AND evaluator = {{evaluator:String}} AND status = 'scored'
                AND time >= {{start:DateTime64(3, 'UTC')}} AND time < {{end:DateTime64(3, 'UTC')}}
        )
        GROUP BY environment HAVING n >= {LEAST} AND unsound > 0 ORDER BY environment""",
        {"app": app, "evaluator": EVALUATOR, "start": period.start, "end": period.end},
    )
    return [_finding(app, row) for row in rows]


def _finding(app: str, row: dict[str, Any]) -> Finding:
    faults = Counter({name: int(n) for name, n in row["counted"].items() if name != _JUDGED and n})
    judged, traces = int(row["counted"].get(_JUDGED, 0)), Share(row["unsound"], row["n"])
    reach = wilson(traces)
    most = ", ".join(f"{name} {n} times" for name, n in faults.most_common(3))
    return Finding(
        type="data",
        app=app,
        environment=row["environment"],
        identity=("unsound_artifacts",),
        description=(
            f"{whereabouts(app, row['environment'])}: {faults.total()} of {judged} artifacts are unsound ({most}), in "
            f"{traces.hits} of {traces.n} traces ({percent(reach.low)} to {percent(reach.high)} of them)."
        ),
        attributes={
            "kind": "unsound_artifacts",
            "metric": METRIC,
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
