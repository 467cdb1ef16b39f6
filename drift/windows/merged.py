"""SQL of what larger windows hold: the sum of the next smaller ones, so that nothing is read from the scores again."""

from drift.windows import sql
from drift.windows.metrics import OwnMetrics
from drift.windows.pooled import pooled
from drift.windows.scope import Scope

_SUMS = ("seen", "sampled", "applicable", "scored", "failed", "late")
_MAPS = {
    "skipped": "Map(String, UInt64)",
    "failures": "Map(String, UInt64)",
    "bins": "Map(Int32, UInt64)",
    "category_counts": "Map(String, UInt64)",
}


def merged_contents(scope: Scope, smaller_s: int, own: OwnMetrics) -> str:
    """SELECT of KEYS (start as UInt32) and CONTENTS of the scope's windows, from those of `smaller_s` seconds."""
    keys = "run_id, app, environment, evaluator, metric, fingerprint, model, prompt_version, segment, segment_value"
    carries = f"metric IN {sql.texts(sorted(own.carriers))}"
    return f"""
SELECT {keys}, window AS start,
    {", ".join(f"n_{name} AS {name}" for name in _SUMS)}, {", ".join(f"m_{name} AS {name}" for name in _MAPS)},
    if({carries}, {pooled("all_parts")}, all_parts) AS parts,
    total AS sum, squares AS sum_squares, least AS min, greatest AS max
FROM (
    SELECT {keys}, toUInt32(intDiv(toUnixTimestamp(start), {scope.size_s}) * {scope.size_s}) AS window,
        {", ".join(f"sum({name}) AS n_{name}" for name in _SUMS)},
        {", ".join(f"sumMap(CAST({name}, '{type_}')) AS m_{name}" for name, type_ in _MAPS.items())},
        sumMap(CAST(windows.parts, 'Map(String, Float64)')) AS all_parts,
        sum(windows.sum) AS total, sum(sum_squares) AS squares, min(windows.min) AS least, max(windows.max) AS greatest
    FROM windows FINAL WHERE {scope.stored(smaller_s)} AND metric NOT IN {sql.texts(sorted(own.per))}
    GROUP BY {keys}, window
)"""
