"""SQL of what base windows hold: a pure function of the de-duplicated rows of `scores` and `traces`."""

from collections.abc import Mapping, Sequence

from drift.windows import sql
from drift.windows.bins import BINS, LOG_ORIGIN, LOG_STEP
from drift.windows.metrics import WatchedMetric
from drift.windows.scope import Scope

OTHER = "__other__"

KEYS: tuple[str, ...] = (
    "run_id",
    "app",
    "environment",
    "evaluator",
    "metric",
    "start",
    "fingerprint",
    "model",
    "prompt_version",
)
KEYS += ("segment", "segment_value")
COUNTS: tuple[str, ...] = ("seen", "sampled", "applicable", "scored", "failed", "skipped", "failures")
VALUES = ("sum", "sum_squares", "min", "max", "bins", "category_counts", "parts", "late")
CONTENTS = COUNTS + VALUES


def base_contents(
    scope: Scope,
    metrics: Mapping[str, WatchedMetric],
    segments: Mapping[str, Sequence[str]],
    *,
    revised: bool,
) -> str:
    """SELECT of KEYS (start as UInt32) and CONTENTS of the scope's base windows.

    A row is first cut by its segments (`cuts`) and gets one 64-bit name per cut (`names`) for all dimensions but the
    metric, so that the wide step groups 300,000 values by three numbers. `revised` counts late rows; a window that
    never closed has none.
    """
    lookup = _Lookup(metrics)
    return f"""
SELECT run_id, app, environment, evaluator, entry.1 AS metric, start, fingerprint, model, prompt_version,
    segment, segment_value, traces.seen AS seen, total - sampled_out AS sampled, entry.2 + failed AS applicable,
    entry.2 AS scored, failed,
    if(scored_rows > entry.2, mapAdd(skipped, map('not_recorded', toUInt64(scored_rows - entry.2))), skipped)
        AS skipped,
    failures, entry.3 AS sum, entry.4 AS sum_squares, entry.5 AS min, entry.6 AS max, entry.7 AS bins,
    entry.8 AS category_counts, parts, late
FROM ({_statuses(scope, segments, revised)}) AS statuses
LEFT JOIN ({_values(scope, segments, lookup)}) AS valued USING (name)
LEFT JOIN ({_categories(scope, segments)}) AS labelled USING (name)
LEFT JOIN ({_seen(scope, segments)}) AS traces
    USING (run_id, app, environment, start, model, prompt_version, segment, segment_value)
ARRAY JOIN arrayConcat(
    valued.entries, labelled.entries,
    arrayMap(
        metric -> (metric, toUInt64(0), 0., 0., CAST(NULL, 'Nullable(Float64)'), CAST(NULL, 'Nullable(Float64)'),
                   CAST(map(), 'Map(Int32, UInt64)'), CAST(map(), 'Map(String, UInt64)')),
        arrayFilter(
            metric -> NOT has(valued.entries.1, metric),
            {lookup.declared("statuses.evaluator", "statuses.segment")}
        )
    )
) AS entry"""


def _rows(scope: Scope, segments: Mapping[str, Sequence[str]], columns: str, where: str = "") -> str:
    """De-duplicated score rows with their window, their cuts and a name for each cut."""
    start = f"toUInt32(intDiv(toUnixTimestamp(time), {scope.size_s}) * {scope.size_s})"
    dimensions = "run_id, app, environment, evaluator, start, fingerprint, model, prompt_version"
    return f"""
    SELECT run_id, app, environment, evaluator, {start} AS start, fingerprint, model, prompt_version, {columns},
        {_cuts(segments)} AS cuts, cityHash64({dimensions}) AS whole,
        arrayMap(cut -> if(cut.1 = '', whole, cityHash64(whole, cut.1, cut.2)), cuts) AS names
    FROM scores FINAL WHERE {scope.rows(start)}{where}"""


def _cuts(segments: Mapping[str, Sequence[str]]) -> str:
    """The whole, and each configured segment that the row has: its value, or the one name of all other values."""
    cuts = [
        f"if(mapContains(segments, {sql.text(name)}), [({sql.text(name)}, if(segments[{sql.text(name)}] IN "
        f"{sql.texts(values)}, segments[{sql.text(name)}], {sql.text(OTHER)}))], [])"
        for name, values in sorted(segments.items())
    ]
    return f"arrayConcat([('', '')], {', '.join(cuts)})" if cuts else "[('', '')]"


def _statuses(scope: Scope, segments: Mapping[str, Sequence[str]], revised: bool) -> str:
    """One row per name: its dimensions, counts by status and reason, summed parts."""
    rows = _rows(scope, segments, "status, reason, parts, ingested_at")
    late = "toUInt64(0)"
    if revised:
        rows = f"""SELECT * FROM ({rows}) AS scored LEFT JOIN (
            SELECT run_id, app, environment, evaluator, toUInt32(toUnixTimestamp(start)) AS start,
                min(closed_at) AS first_closed
            FROM windows FINAL WHERE {scope.stored(scope.size_s)} GROUP BY ALL
        ) AS closed USING (run_id, app, environment, evaluator, start)"""
        late = "countIf(first_closed > toDateTime64(0, 3, 'UTC') AND ingested_at > first_closed)"
    dimensions = "run_id, app, environment, evaluator, start, fingerprint, model, prompt_version"
    each = ", ".join(f"any({name}) AS {name}" for name in dimensions.split(", "))
    return f"""
    SELECT name, {each}, any(cut).1 AS segment, any(cut).2 AS segment_value, sum(n) AS total,
        sumIf(n, status = 'sampled_out') AS sampled_out, sumIf(n, status = 'scored') AS scored_rows,
        sumIf(n, status = 'failed') AS failed,
        sumMapIf(map(if(reason = '', status, reason), n), status NOT IN ('scored', 'failed')) AS skipped,
        sumMapIf(map(if(reason = '', status, reason), n), status = 'failed') AS failures,
        sumMap(some_parts) AS parts, sum(some_late) AS late
    FROM (
        SELECT name, status, toString(reason) AS reason, count() AS n, any(cut) AS cut, {each},
            sumMap(CAST(parts, 'Map(String, Float64)')) AS some_parts, {late} AS some_late
        FROM ({rows}) ARRAY JOIN cuts AS cut, names AS name
        GROUP BY name, status, reason
    ) GROUP BY name"""


def _values(scope: Scope, segments: Mapping[str, Sequence[str]], lookup: "_Lookup") -> str:
    """Per name the entries of its metrics; segments for primary metrics only."""
    rows = _rows(scope, segments, "metrics", " AND status = 'scored'")
    edge = f"low + span * (position {{}}) / {BINS}"
    up = f"position + (value >= {edge.format('+ 1')}) - (value < {edge.format('+ 0')})"
    down = f"position + (value > {edge.format('+ 0')}) - (value <= {edge.format('- 1')})"
    # Level upon level: an alias used twice is analysed twice, and twice again in whatever uses that.
    return f"""
    SELECT name, groupArray((metric, n, total, squares, least, greatest, bins, CAST(map(), 'Map(String, UInt64)')))
        AS entries
    FROM (
        SELECT name, concat(any(some_evaluator), '.', any(some_key)) AS metric, sum(some) AS n, sum(s) AS total,
            sum(ss) AS squares, CAST(min(lowest), 'Nullable(Float64)') AS least,
            CAST(max(highest), 'Nullable(Float64)') AS greatest, sumMap(map(bin, some)) AS bins
        FROM (
            SELECT name, id, undeclared, bin, any(evaluator) AS some_evaluator, any(key) AS some_key, count() AS some,
                sum(value) AS s, sum(value * value) AS ss, min(value) AS lowest, max(value) AS highest
            FROM (
                SELECT names, evaluator, key, value, id, primary, if(id = 0, cityHash64(key), 0) AS undeclared,
                    toInt32(multiIf(
                        span = 0, position,
                        better > 0, least(greatest({up}, 0), {BINS}),
                        least(greatest({down}, 0), {BINS})
                    )) AS bin
                FROM (
                    SELECT *, multiIf(
                        span = 0 AND value = 0, 0,
                        span = 0, sign(value) * ({LOG_ORIGIN} + floor(log(abs(value)) / {LOG_STEP!r})),
                        better > 0, floor((value - low) / span * {BINS}),
                        ceil((value - low) / span * {BINS})
                    ) AS position
                    FROM (
                        SELECT names, evaluator, key, value, id, {lookup.scales("id")}
                        FROM (
                            SELECT names, evaluator, key, value, {lookup.id("concat(evaluator, '.', key)")} AS id
                            FROM ({rows}) ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
                        )
                    )
                )
            )
            ARRAY JOIN if(primary = 1, names, [names[1]]) AS name
            GROUP BY name, id, undeclared, bin
        ) GROUP BY name, id, undeclared
    ) GROUP BY name"""


def _categories(scope: Scope, segments: Mapping[str, Sequence[str]]) -> str:
    """Per name of a whole the entries of its categories, as metrics without values."""
    rows = _rows(scope, {}, "categories", " AND status = 'scored' AND notEmpty(mapKeys(categories))")
    nothing = (
        "0., 0., CAST(NULL, 'Nullable(Float64)'), CAST(NULL, 'Nullable(Float64)'), CAST(map(), 'Map(Int32, UInt64)')"
    )
    return f"""
    SELECT name, groupArray((metric, n, {nothing}, labels)) AS entries
    FROM (
        SELECT name, metric, sum(some) AS n, sumMap(map(label, some)) AS labels
        FROM (
            SELECT whole AS name, concat(evaluator, '.', category) AS metric, label, count() AS some
            FROM ({rows}) ARRAY JOIN mapKeys(categories) AS category, mapValues(categories) AS label
            GROUP BY name, metric, label
        ) GROUP BY name, metric
    ) GROUP BY name"""


def _seen(scope: Scope, segments: Mapping[str, Sequence[str]]) -> str:
    """How many traces there were, per dimensions that traces have."""
    start = f"toUInt32(intDiv(toUnixTimestamp(time), {scope.size_s}) * {scope.size_s})"
    return f"""
    SELECT run_id, app, environment, start, model, prompt_version, cut.1 AS segment, cut.2 AS segment_value,
        count() AS seen
    FROM (
        SELECT run_id, app, environment, {start} AS start, model, prompt_version, {_cuts(segments)} AS cuts
        FROM traces FINAL WHERE {scope.rows(start, evaluators=False)}
    ) ARRAY JOIN cuts AS cut
    GROUP BY ALL"""


class _Lookup:
    """Declared metrics as constant arrays. Arrays give 0 beyond their end, which is what an undeclared metric needs."""

    def __init__(self, metrics: Mapping[str, WatchedMetric]) -> None:
        self.metrics = sorted(metrics.items())

    def id(self, metric: str) -> str:
        """Expression: the number of a metric, from 1; 0 of an undeclared one."""
        names = sql.array((sql.text(name) for name, _ in self.metrics), "String")
        ids = sql.array((str(i + 1) for i in range(len(self.metrics))), "UInt16")
        return f"transform({metric}, {names}, {ids}, toUInt16(0))"

    def scales(self, id_: str) -> str:
        """Columns `low`, `span` (0: logarithmic), `better` (1 higher, -1 lower) and `primary` of a number."""
        scales = [found.scale for _, found in self.metrics]
        columns = {
            "low": sql.array((repr(s.low if s.bounded else 0.0) for s in scales), "Float64"),
            "span": sql.array((repr(s.high - s.low if s.bounded else 0.0) for s in scales), "Float64"),
            "better": sql.array(("1" if s.better == "higher" else "-1" for s in scales), "Int8"),
            "primary": sql.array((str(int(found.metric.primary)) for _, found in self.metrics), "UInt8"),
        }
        return ", ".join(f"{array}[{id_}] AS {name}" for name, array in columns.items())

    def declared(self, evaluator: str, segment: str) -> str:
        """Expression: the names of an evaluator's metrics, in a segment those of its primary ones."""
        groups: dict[str, list[WatchedMetric]] = {}
        for _, found in self.metrics:
            groups.setdefault(found.evaluator.id, []).append(found)
        ids = sql.array((sql.text(id_) for id_ in groups), "String")

        def names(primary: bool) -> str:
            lists = (
                sql.array((sql.text(f.name) for f in found if f.metric.primary or not primary), "String")
                for found in groups.values()
            )
            return sql.array(lists, "Array(String)")

        return f"if({segment} = '', {names(False)}, {names(True)})[indexOf({ids}, {evaluator})]"
