"""Find traces in which an agent left unsound artifacts, with the faults that `agent_sanity` counted."""

from collections import Counter
from collections.abc import Iterator

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.model import IN_PERIOD, AppEnvironment, Insight, insight, percent_estimate, share_estimate
from ragtide.drift.stats import Share

EVALUATOR, KEY = "agent_sanity", "agent_sanity"
METRIC = f"{EVALUATOR}.{KEY}"
MIN_TRACES = 10  # traces with artifacts
_TOTAL_PART = "artifacts"  # the part that counts them all; every other one is a fault
_MAX_TRACES = 10


@insight(reads=AppData)
def unsound_artifacts(app: AppData) -> Iterator[Insight]:
    """Find the environments with an unsound artifact."""
    if METRIC not in app.rules:
        return
    rows = app.database.rows(
        f"""
        SELECT environment, count() AS n, countIf(value < 1) AS unsound, sumMap(parts_of) AS counted,
            arrayMap(one -> one.2, groupArraySortedIf({_MAX_TRACES})((value, trace_id), value < 1)) AS worst
        FROM (
            SELECT environment, trace_id, metrics['{KEY}'] AS value, CAST(parts, 'Map(String, Float64)') AS parts_of
            FROM scores FINAL
            WHERE run_id = 'live' AND app = {{app:String}} AND evaluator = '{EVALUATOR}' AND status = 'scored'
                AND {IN_PERIOD}
        )
        GROUP BY environment HAVING n >= {MIN_TRACES} AND unsound > 0 ORDER BY environment""",
        {"app": app.app, **app.period.bound},
    )
    for row in rows:
        faults = Counter({name: int(n) for name, n in row["counted"].items() if name != _TOTAL_PART and n})
        artifacts, traces = int(row["counted"].get(_TOTAL_PART, 0)), Share(row["unsound"], row["n"])
        most = ", ".join(f"{name}: {n:,}" for name, n in faults.most_common(3))
        yield Insight(
            type="data",
            where=AppEnvironment(app.app, row["environment"]),
            identity=("unsound_artifacts",),
            message=(
                f"{faults.total():,} of {artifacts:,} artifacts are unsound ({most}), in {traces.hits:,} of "
                f"{traces.n:,} traces ({percent_estimate(traces)})"
            ),
            figures={
                "kind": "unsound_artifacts",
                "metric": METRIC,
                "artifacts": artifacts,
                "faults": dict(faults.most_common()),
                "traces": traces.n,
                "unsound_traces": traces.hits,
                **share_estimate("unsound_share", traces),
            },
            examples=row["worst"],
            actions=(
                "Open the artifacts of the example traces. The evidence of their scores names the fault of each.",
                "Make the agent check its artifacts before it ends: each must parse, and declared files must exist.",
            ),
        )
