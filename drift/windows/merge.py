"""SQL of larger windows: the sum of the next smaller ones, so that scores are not read again.

A smaller window has no row of a category, or of an undeclared metric, if no record has it. Those records count too, so
coverage is summed over the smaller windows of the whole series: all metrics of one evaluator, fingerprint, model,
prompt version and segment share it. Traces are counted in smaller windows of any evaluator.

The parts of a window are bounded: `pool_classes` keeps the labels of the largest classes and pools the others. Keys are
described in `ragtide.evaluators.parts`."""

from collections.abc import Iterable

from ragtide.drift import sql
from ragtide.drift.topics import TOPIC
from ragtide.drift.windows.metrics import WindowMetricNames
from ragtide.drift.windows.scope import Scope
from ragtide.evaluators.parts import MOST_CLASSES, POOLED

_MAX_COPIES = 5_000_000


def pool_classes(parts: str) -> str:
    """Expression: the map `parts`, in which only the largest classes keep their labels; ties are broken by name."""
    keys = rf"arrayMap(part -> splitByChar('\t', part), mapKeys({parts}))"
    labels = "arrayDistinct(arraySlice(key, 2))"
    weights = (
        f"arrayReduce('sumMap', arrayMap(key -> {labels}, keys), "
        f"arrayMap((key, n) -> arrayWithConstant(length({labels}), n), keys, mapValues({parts})))"
    )
    order = f"(one.1 = {sql.text(POOLED)}, -one.2, one.1)"
    # Labels are copied for each key, so where keys are very many (each record has its own class), fewer are kept.
    most = f"least({MOST_CLASSES - 1}, intDiv({_MAX_COPIES}, greatest(length(keys), 1)))"
    kept = f"arraySlice(arraySort(one -> {order}, arrayZip(weights.1, weights.2)), 1, {most}).1"
    bounded = f"if(place = 1 OR has(kept, part), part, {sql.text(POOLED)})"
    summed = (
        "arrayReduce('sumMap', arrayMap(key -> [arrayStringConcat("
        rf"arrayMap((part, place) -> {bounded}, key, arrayEnumerate(key)), '\t')], keys), "
        f"arrayMap(n -> [n], mapValues({parts})))"
    )
    pool = _let("kept", kept, _let("summed", summed, "mapFromArrays(summed.1, summed.2)"))
    return _let("keys", keys, _let("weights", weights, f"if(length(weights.1) <= {MOST_CLASSES}, {parts}, {pool})"))


def _let(name: str, value: str, then: str) -> str:
    """Expression: `then`, in which `name` is `value`, evaluated and analysed once."""
    return f"arrayMap({name} -> {then}, [{value}])[1]"


_PLACE = "run_id, app, environment, model, prompt_version, segment, segment_value"
_SERIES = f"{_PLACE}, evaluator, fingerprint"
_KEYS = f"{_SERIES}, metric"
_SUMS = ("seen", "sampled", "scored", "failed", "late")
_MAPS = {
    "skipped": "Map(String, UInt64)",
    "failures": "Map(String, UInt64)",
    "bins": "Map(Int32, UInt64)",
    "category_counts": "Map(String, UInt64)",
    "parts": "Map(String, Float64)",
}
_OF_SERIES = ("skipped", "failures", "parts")
_RECORDS = "scored + failed + arraySum(mapValues(skipped))"  # 0 where a window no longer has the metric


def merged_contents(
    scope: Scope, smaller_s: int, window_metric_names: WindowMetricNames, counters: Iterable[str]
) -> str:
    """Select KEYS (start as UInt32) and CONTENTS of the scope's windows, from those of `smaller_s` seconds.

    `counters`: one metric of each evaluator, of which every smaller window with records has a row.
    """
    start = f"toUInt32(intDiv(toUnixTimestamp(start), {scope.size_s}) * {scope.size_s})"
    counting = f"metric IN {sql.texts(sorted(counters))}"
    maps = {name: f"sumMap(CAST(windows.{name}, '{type_}'))" for name, type_ in _MAPS.items()}
    # Where all smaller windows have the metric, its own sums are those of its series.
    is_in_all = "records >= all_records"
    held = {name: f"if({is_in_all}, n_{name}, all_{name})" for name in ("sampled", "failed", "late")}
    held |= {name: f"if({is_in_all}, m_{name}, all_{name})" for name in _OF_SERIES}
    not_recorded = "map('not_recorded', toUInt64(all_valued - n_scored))"
    parts = f"if(evaluator IN {sql.texts(sorted(window_metric_names.evaluators))}, m_parts, {held['parts']})"
    if window_metric_names.counts_metrics:
        parts = (
            f"if(metric IN {sql.texts(sorted(window_metric_names.counts_metrics))}, {pool_classes('m_parts')}, {parts})"
        )
    return f"""
SELECT {_KEYS}, window AS start,
    greatest(traces, n_seen) AS seen, {held["sampled"]} AS sampled, n_scored + {held["failed"]} AS applicable,
    n_scored AS scored, {held["failed"]} AS failed,
    if({is_in_all} OR all_valued <= n_scored, {held["skipped"]}, mapAdd(all_skipped, {not_recorded})) AS skipped,
    {held["failures"]} AS failures, total AS sum, squares AS sum_squares, lowest AS min, highest AS max,
    m_bins AS bins, m_category_counts AS category_counts, {parts} AS parts, {held["late"]} AS late
FROM (
    SELECT {_KEYS}, {start} AS window, cityHash64({_SERIES}, window) AS series, cityHash64({_PLACE}, window) AS place,
        sum({_RECORDS}) AS records, {", ".join(f"sum(windows.{name}) AS n_{name}" for name in _SUMS)},
        {", ".join(f"{total} AS m_{name}" for name, total in maps.items())},
        sum(windows.sum) AS total, sum(sum_squares) AS squares, min(windows.min) AS lowest, max(windows.max) AS highest
    FROM windows FINAL WHERE {scope.windows_condition(smaller_s)}
    AND metric NOT IN {sql.texts(sorted(window_metric_names.per))}
    GROUP BY {_KEYS}, window HAVING records > 0
) AS summed
LEFT JOIN (
    SELECT cityHash64({_SERIES}, {start}) AS series, sum({_RECORDS}) AS all_records, sum(sampled) AS all_sampled,
        sum(failed) AS all_failed, sum(late) AS all_late, sum(scored + skipped['not_recorded']) AS all_valued,
        sumMap(mapFilter((why, n) -> why != 'not_recorded', CAST(skipped, '{_MAPS["skipped"]}'))) AS all_skipped,
        {maps["failures"]} AS all_failures, {maps["parts"]} AS all_parts
    FROM windows FINAL WHERE {scope.windows_condition(smaller_s)} AND {counting} GROUP BY series
) AS covered USING (series)
LEFT JOIN (
    SELECT cityHash64({_PLACE}, {start}) AS place, arraySum(mapValues(maxMap(map(start, seen)))) AS traces
    FROM windows FINAL
    WHERE {scope.windows_condition(smaller_s, evaluators=False)} AND {counting}
    AND segment != {sql.text(TOPIC)} GROUP BY place
) AS counted USING (place)"""
