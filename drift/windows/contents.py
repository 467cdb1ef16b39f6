"""SQL of what base windows hold: a pure function of the de-duplicated rows of `scores` and `traces`."""

from collections.abc import Mapping, Sequence

from ragtide.drift import sql
from ragtide.drift.topics import TOPIC
from ragtide.drift.windows.histogram import HISTOGRAM_BINS, LOG_ORIGIN, LOG_STEP
from ragtide.drift.windows.merge import pool_classes
from ragtide.drift.windows.metrics import MetricRef, window_metrics
from ragtide.drift.windows.scope import Scope

OTHER_VALUES = "__other__"

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
_DIMENSIONS = ("run_id", "app", "environment", "evaluator", "start", "fingerprint", "model", "prompt_version")
_TRACE_DIMENSIONS = ("run_id", "app", "environment", "start", "model", "prompt_version")
_NO_NUMBERS = (
    "0., 0., CAST(NULL, 'Nullable(Float64)'), CAST(NULL, 'Nullable(Float64)'), CAST(map(), 'Map(Int32, UInt64)')"
)
_NO_LABELS = "CAST(map(), 'Map(String, UInt64)')"
_UNDECLARED = (0.0, 0.0, 1, 0)
# Rows without weight: traces that a judge looked at because a person asked for it. They are no part of the sample.
_SCORED = "status = 'scored' AND weight > 0"
_STATUS = "if(weight = 0, 'sampled_out', toString(scores.status)) AS status"
_REASON = "if(weight = 0 AND scores.status != 'sampled_out', 'on_request', toString(scores.reason)) AS reason"


def base_contents(
    scope: Scope,
    metrics: Mapping[str, MetricRef],
    segments: Mapping[str, Sequence[str]],
    *,
    revised: bool,
    also: str = "",
) -> str:
    """SELECT of KEYS (start as UInt32) and CONTENTS, in that order, of the scope's base windows; then of the columns
    `also`, in which those have their names.

    A row is cut by its segments (`cuts`) and has a 64-bit name per cut (`names`) for all dimensions but the metric, so
    that the wide step groups 300,000 values by three numbers; the dimensions travel beside it as one tuple, since the
    engine's analysis of a query costs more than a small window does. `revised` counts late rows; a window that never
    closed has none.
    """
    spec = _DeclaredMetrics({name: found for name, found in metrics.items() if found.evaluator.id not in scope.others})
    dimension = {name: f"place.{i + 1}" for i, name in enumerate(_DIMENSIONS)}
    scored, parts = spec.entry_counts(dimension["evaluator"])
    keys = dimension | {"metric": "entry.1", "segment": "cut.1", "segment_value": "cut.2"}
    counted = {
        # No trace brings its topic: those of a topic are the ones that were to be scored.
        "seen": f"if(cut.1 = {sql.text(TOPIC)}, greatest(seen, total), seen)",
        "sampled": "total - sampled_out",
        "applicable": f"{scored} + failed",
        "scored": scored,
        "failed": "failed",
        "skipped": f"if(scored_rows > {scored}, "
        f"mapAdd(skipped, map('not_recorded', toUInt64(scored_rows - {scored}))), skipped)",
        "failures": "failures",
        **{name: f"entry.{i}" for i, name in enumerate(("sum", "sum_squares", "min", "max", "bins"), start=3)},
        "category_counts": "entry.8",
        "parts": parts,
        "late": "late",
    }
    selected = ", ".join(f"{expression} AS `{name}`" for name, expression in _in_order(keys | counted))
    return f"""
SELECT {selected}{also and f", {also}"}
FROM ({_statuses(scope, segments, spec, revised)}) AS statuses
LEFT JOIN ({_values(scope, segments, spec)}) AS valued USING (name)
LEFT JOIN ({_categories(scope)}) AS labelled USING (name)
LEFT JOIN ({_trace_counts(scope, segments)}) AS traces USING (trace_place)
ARRAY JOIN arrayConcat(
    entries, labels,
    arrayMap(
        metric -> (metric, toUInt64(0), {_NO_NUMBERS}, {_NO_LABELS}),
        arrayFilter(metric -> NOT has(entries.1, metric), declared)
    )
) AS entry"""


def _in_order(columns: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(name, columns[name]) for name in (*KEYS, *CONTENTS)]


def _rows(scope: Scope, segments: Mapping[str, Sequence[str]], columns: str, where: str = "") -> str:
    """De-duplicated score rows with their place, their cuts and a name for each cut."""
    start = f"toUInt32(intDiv(toUnixTimestamp(time), {scope.size_s}) * {scope.size_s})"
    place = ", ".join(start if name == "start" else name for name in _DIMENSIONS)
    return f"""
    SELECT ({place}) AS place, {columns}, {_cuts(segments)} AS cuts,
        arrayMap(cut -> cityHash64(place, cut), cuts) AS names
    FROM scores FINAL WHERE {scope.rows_condition(start)}{where}"""


def _cuts(segments: Mapping[str, Sequence[str]]) -> str:
    """Return the whole, and each configured segment of the row: its value, or the one name of all other values."""
    cuts = [
        f"if(mapContains(segments, {sql.text(name)}), [({sql.text(name)}, if(segments[{sql.text(name)}] IN "
        f"{sql.texts(values)}, segments[{sql.text(name)}], {sql.text(OTHER_VALUES)}))], [])"
        for name, values in sorted(segments.items())
    ]
    return f"arrayConcat([('', '')], {', '.join(cuts)})" if cuts else "[('', '')]"


def _statuses(scope: Scope, segments: Mapping[str, Sequence[str]], spec: "_DeclaredMetrics", revised: bool) -> str:
    """Select one row per name: its place and cut, declared metrics, counts by status and reason, summed parts."""
    rows = _rows(scope, segments, f"{_STATUS}, {_REASON}, parts, ingested_at")
    late = "toUInt64(0)"
    if revised:
        rows = f"""SELECT * FROM ({rows}) AS scored LEFT JOIN (
            SELECT run_id, app, environment, evaluator, toUInt32(toUnixTimestamp(start)) AS start,
                min(closed_at) AS first_closed
            FROM windows FINAL WHERE {scope.windows_condition(scope.size_s)} GROUP BY ALL
        ) AS closed ON place.1 = run_id AND place.2 = app AND place.3 = environment AND place.4 = evaluator
            AND place.5 = start"""
        late = "countIf(first_closed > toDateTime64(0, 3, 'UTC') AND ingested_at > first_closed)"
    trace_place = ", ".join(f"place.{_DIMENSIONS.index(name) + 1}" for name in _TRACE_DIMENSIONS)
    evaluator = f"place.{_DIMENSIONS.index('evaluator') + 1}"
    return f"""
    SELECT * EXCEPT all_parts, cityHash64({trace_place}, cut) AS trace_place,
        {spec.declared(evaluator, "cut.1")} AS declared, {spec.bounded("all_parts", evaluator)} AS parts
    FROM (
        SELECT name, any(some_place) AS place, any(some_cut) AS cut, sum(n) AS total,
            sumIf(n, status = 'sampled_out') AS sampled_out, sumIf(n, status = 'scored') AS scored_rows,
            sumIf(n, status = 'failed') AS failed,
            sumMapIf(map(why, n), status NOT IN ('scored', 'failed')) AS skipped,
            sumMapIf(map(why, n), status = 'failed') AS failures,
            sumMap(some_parts) AS all_parts, sum(some_late) AS late
        FROM (
            SELECT name, toString(status) AS status, if(reason = '', status, toString(reason)) AS why, count() AS n,
                any(place) AS some_place, any(cut) AS some_cut,
                sumMap(CAST(parts, 'Map(String, Float64)')) AS some_parts, {late} AS some_late
            FROM ({rows}) ARRAY JOIN cuts AS cut, names AS name
            GROUP BY name, status, reason
        ) GROUP BY name
    )"""


def _values(scope: Scope, segments: Mapping[str, Sequence[str]], spec: "_DeclaredMetrics") -> str:
    """Per name the entries of its metrics; segments for primary metrics only."""
    rows = _rows(scope, segments, "evaluator, metrics", f" AND {_SCORED}")
    edge = f"low + span * nearest / {HISTOGRAM_BINS}"
    # Level upon level: an alias used twice is analysed twice, and twice again in whatever uses that. The nearest edge
    # decides exactly, whatever the division rounded.
    return f"""
    SELECT name, groupArray((metric, n, total, squares, least, greatest, bins, {_NO_LABELS})) AS entries
    FROM (
        SELECT any(some_name) AS name, concat(any(some_evaluator), '.', any(some_key)) AS metric, sum(some) AS n,
            sum(s) AS total, sum(ss) AS squares, CAST(min(lowest), 'Nullable(Float64)') AS least,
            CAST(max(highest), 'Nullable(Float64)') AS greatest, sumMap(map(bin, some)) AS bins
        FROM (
            SELECT cityHash64(name, key) AS id, bin, any(name) AS some_name, any(evaluator) AS some_evaluator,
                any(key) AS some_key, count() AS some, sum(value) AS s, sum(value * value) AS ss,
                min(value) AS lowest, max(value) AS highest
            FROM (
                SELECT evaluator, key, value, if(primary = 1, names, [names[1]]) AS named, toInt32(multiIf(
                        span = 0, nearest, better > 0, nearest - (value < {edge}), nearest + (value > {edge})
                    )) AS bin
                FROM (
                    SELECT names, evaluator, key, value, {spec.scales("scale")}, multiIf(
                            span != 0, round((value - low) / span * {HISTOGRAM_BINS}),
                            value = 0, 0,
                            sign(value) * ({LOG_ORIGIN} + floor(log(abs(value)) / {LOG_STEP!r}))
                        ) AS nearest
                    FROM (
                        SELECT names, evaluator, key, value, {spec.scale("concat(evaluator, '.', key)")} AS scale
                        FROM ({rows}) ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
                    )
                )
            )
            ARRAY JOIN named AS name
            GROUP BY id, bin
        ) GROUP BY id
    ) GROUP BY name"""


def _categories(scope: Scope) -> str:
    """Per name of a whole the entries of its categories, as metrics without values."""
    rows = _rows(scope, {}, "evaluator, categories", f" AND {_SCORED} AND notEmpty(mapKeys(categories))")
    return f"""
    SELECT name, groupArray((metric, n, {_NO_NUMBERS}, labels)) AS labels
    FROM (
        SELECT name, metric, sum(some) AS n, sumMap(map(label, some)) AS labels
        FROM (
            SELECT names[1] AS name, concat(evaluator, '.', category) AS metric, label, count() AS some
            FROM ({rows}) ARRAY JOIN mapKeys(categories) AS category, mapValues(categories) AS label
            GROUP BY name, metric, label
        ) GROUP BY name, metric
    ) GROUP BY name"""


def _trace_counts(scope: Scope, segments: Mapping[str, Sequence[str]]) -> str:
    """Count traces per dimensions that traces have."""
    start = f"toUInt32(intDiv(toUnixTimestamp(time), {scope.size_s}) * {scope.size_s})"
    place = ", ".join(start if name == "start" else name for name in _TRACE_DIMENSIONS)
    return f"""
    SELECT cityHash64({place}, cut) AS trace_place, count() AS seen
    FROM (
        SELECT {", ".join(n for n in _TRACE_DIMENSIONS if n != "start")}, time, {_cuts(segments)} AS cuts
        FROM traces FINAL WHERE {scope.rows_condition(start, evaluators=False)}
    ) ARRAY JOIN cuts AS cut
    GROUP BY trace_place"""


class _DeclaredMetrics:
    """Declared metrics as constant expressions; those for method `window` only for its evaluators."""

    def __init__(self, metrics: Mapping[str, MetricRef]) -> None:
        self.metrics = sorted(metrics.items())
        found = {name: _scale(metric) for name, metric in self.metrics}
        self.kinds = [_UNDECLARED, *dict.fromkeys(scale for scale in found.values() if scale != _UNDECLARED)]
        self.kind_of = {name: self.kinds.index(scale) + 1 for name, scale in found.items()}
        self.window_metric_names = window_metrics(metrics.values())

    def entry_counts(self, evaluator: str) -> tuple[str, str]:
        """Expressions of an entry: how many records it rests on, and its parts."""
        if not self.window_metric_names.evaluators:
            return "entry.2", "parts"
        # A metric of the whole window rests on all scored records, whether or not they alone have a value of it.
        scored = f"if(entry.1 IN {sql.texts(sorted(self.window_metric_names.plain))}, scored_rows, entry.2)"
        elsewhere = f"{evaluator} IN {sql.texts(sorted(self.window_metric_names.evaluators))}"
        elsewhere += f" AND entry.1 NOT IN {sql.texts(sorted(self.window_metric_names.counts_metrics))}"
        return scored, f"if({elsewhere}, CAST(map(), 'Map(String, Float64)'), parts)"

    def bounded(self, parts: str, evaluator: str) -> str:
        """Expression: the map of parts, bounded before there is a copy of it for each metric."""
        if not self.window_metric_names.evaluators:
            return parts
        classified = sql.texts(sorted(self.window_metric_names.evaluators))
        return f"if({evaluator} IN {classified}, {pool_classes(parts)}, {parts})"

    def scale(self, metric: str) -> str:
        """Expression: which of the different scales a metric has, from 1."""
        names = sql.array((sql.text(name) for name in self.kind_of), "String")
        numbers = sql.array(map(str, self.kind_of.values()), "UInt16")
        return f"transform({metric}, {names}, {numbers}, toUInt16(1))"

    def scales(self, scale: str) -> str:
        """Columns `low`, `span` (0: logarithmic), `better` (1 higher, -1 lower) and `primary` of a scale."""
        types = {"low": "Float64", "span": "Float64", "better": "Int8", "primary": "UInt8"}
        return ", ".join(
            f"{sql.array((repr(kind[i]) for kind in self.kinds), type_)}[{scale}] AS {name}"
            for i, (name, type_) in enumerate(types.items())
        )

    def declared(self, evaluator: str, segment: str) -> str:
        """Expression: the names of an evaluator's metrics, in a segment those of its primary ones."""
        groups: dict[str, list[MetricRef]] = {}
        for found in (found for _, found in self.metrics if not found.metric.per):
            groups.setdefault(found.evaluator.id, []).append(found)
        ids = sql.array((sql.text(id_) for id_ in groups), "String")

        def names(primary: bool) -> str:
            lists = (
                sql.array((sql.text(f.name) for f in found if f.metric.primary or not primary), "String")
                for found in groups.values()
            )
            return sql.array(lists, "Array(String)")

        return f"if({segment} = '', {names(False)}, {names(True)})[indexOf({ids}, {evaluator})]"


def _scale(found: MetricRef) -> tuple[float, float, int, int]:
    """low, span, better, primary; an undeclared metric is logarithmic and not primary."""
    scale = found.scale
    primary = int(found.metric.primary)
    if not scale.bounded:
        return (0.0, 0.0, 1, primary)
    return (scale.low, scale.high - scale.low, 1 if scale.better == "higher" else -1, primary)
