"""SQL of objects in images: right, misclassified, missed and hallucinated ones.

Drawn from the parts that windows and records have stored: `ragtide.evaluators.vision.counts` has their formulas. Counts
at scores of whole hundredths are exact, those of the pooled class too.
"""

from collections.abc import Mapping

from ragtide.dashboards.parts_sql import newest, newest_ids, parts, summed_parts
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.trace_links import trace_link_sql
from ragtide.dashboards.variable_sql import number, value
from ragtide.drift.sql import text
from ragtide.evaluators.classification.score_bins import BINS

DETECTION = "object_detection"
SCORE = "score"  # the variable: predictions with that score or more count, in hundredths
_CARRIER = f"{DETECTION}.map"
_CHOSEN = number(SCORE)
_PREDICTIONS = {
    "tp": "tp",
    "fp: misclassification": "misclassified",
    "fp: hallucination": "predictions - tp - misclassified",
}
_MISSED = {"fn: misclassification": "mistaken", "fn: no prediction": "objects - tp - mistaken"}
_EVIDENCE = {
    "false_positive_misclassification": "fp: misclassification",
    "false_positive_hallucination": "fp: hallucination",
    "false_negative_misclassification": "fn: misclassification",
    "false_negative_no_prediction": "fn: no prediction",
}


def precision_recall(tables: Tables) -> str:
    """Class, recall and precision at every threshold that counts tell apart; no point where one is 0 / 0."""
    at = (
        f"SELECT class, threshold, {_counts('threshold')} FROM ({_of_classes(summed_parts(tables, _CARRIER))}) "
        f"ARRAY JOIN range({BINS + 1}) AS threshold GROUP BY class, threshold"
    )
    return (
        f"SELECT class, tp / objects AS recall, tp / predictions AS precision FROM ({at}) "
        "WHERE objects > 0 AND predictions > 0 ORDER BY class, threshold DESC"
    )


def by_class(tables: Tables) -> str:
    """A row per class: its objects, predictions by kind, missed objects by kind; the most errors first."""
    counts = f"SELECT class, {_counts(_CHOSEN)} FROM ({_of_classes(summed_parts(tables, _CARRIER))}) GROUP BY class"
    return (
        f"SELECT class, objects, {_named(_PREDICTIONS | _MISSED)}, tp / nullIf(predictions, 0) AS precision, "
        "tp / nullIf(objects, 0) AS recall, 2 * tp / nullIf(predictions + objects, 0) AS f1 "
        f"FROM ({counts}) ORDER BY predictions + objects - 2 * tp DESC, class LIMIT 1000"
    )


def predictions(tables: Tables) -> str:
    """Predictions over time, by kind."""
    return _over_time(tables, _PREDICTIONS)


def objects(tables: Tables) -> str:
    """Objects over time: found, and missed by kind."""
    return _over_time(tables, {"found": "tp"} | _MISSED)


def examples(tables: Tables, most: int, trace_url: str) -> str:
    """By class and kind, in how many of the newest images it came up, and ids of the newest of their traces."""
    of_records = (
        "SELECT trace_id, at, splitByChar('\\t', part.1) AS key, part.2 AS n FROM (SELECT trace_id, time AS at, "
        f"arrayJoin(CAST(parts, 'Array(Tuple(String, Float64))')) AS part FROM ({newest(tables, DETECTION)}))"
    )
    counts = (
        f"SELECT trace_id, any(at) AS time, class, {_counts(_CHOSEN)} "
        f"FROM ({_of_classes(of_records, 'trace_id', 'at')}) GROUP BY trace_id, class"
    )
    kinds = _PREDICTIONS | _MISSED
    return (
        f"SELECT class, kind, count() AS images, {newest_ids(most)} AS trace, "
        f"{trace_link_sql(value('app'), 'trace', trace_url)} AS trace_link FROM ({counts}) "
        f"ARRAY JOIN [{', '.join(map(text, kinds))}] AS kind, [{', '.join(kinds.values())}] AS times "
        "WHERE times > 0 GROUP BY class, kind ORDER BY class, kind LIMIT 5000"
    )


def places(tables: Tables, trace_url: str) -> str:
    """Positions of errors in the evaluator's lists of regions, by kind; newest images first."""
    kind = "JSONExtractString(one, 'kind')"
    side = f"if(startsWith({kind}, 'false_positive'), 'predicted', 'expected')"
    names = f"[{', '.join(map(text, _EVIDENCE))}], [{', '.join(map(text, _EVIDENCE.values()))}]"
    return (
        f"SELECT time, trace_id AS trace, transform({kind}, {names}, {kind}) AS error, "
        f"concat('boxes.', {side}, '[', toString(JSONExtractUInt(one, 'start')), ']') AS region, "
        "JSONExtract(one, 'score', 'Nullable(Float64)') AS score, "
        f"{trace_link_sql(value('app'), 'trace_id', trace_url)} AS trace_link "
        f"FROM ({newest(tables, DETECTION)}) ARRAY JOIN JSONExtractArrayRaw(evidence) AS one "
        "ORDER BY time DESC, trace, error, region LIMIT 500"
    )


def _over_time(tables: Tables, kinds: Mapping[str, str]) -> str:
    of_windows = _of_classes(parts(tables, _CARRIER), "start")
    counts = f"SELECT $__timeInterval(start) AS time, {_counts(_CHOSEN)} FROM ({of_windows}) GROUP BY time"
    return f"SELECT time, {_named(kinds)} FROM ({counts}) ORDER BY time"


def _of_classes(counted: str, *columns: str) -> str:
    """Class, kind and score bin (0 where a part has none) of those parts that belong to a class; and these columns."""
    more = "".join(f"{column}, " for column in columns)
    return (
        f"SELECT {more}key[2] AS class, splitByChar('.', key[1])[1] AS kind, "
        f"toInt16OrZero(splitByChar('.', key[1])[2]) AS bin, n FROM ({counted}) WHERE length(key) = 2"
    )


def _counts(least: str) -> str:
    """Columns `objects`, `tp`, `predictions`, `misclassified` and `mistaken`, at scores of that bin or more."""
    return (
        "sumIf(n, kind = 'expected') AS objects, "
        f"sumIf(n, kind = 'true' AND bin >= {least}) AS tp, "
        f"sumIf(n, kind IN ('predicted', 'unexpected') AND bin >= {least}) AS predictions, "
        f"sumIf(n, kind = 'misclassified' AND bin >= {least}) AS misclassified, "
        f"sumIf(n, kind = 'mistaken' AND bin >= {least}) - sumIf(n, kind = 'corrected' AND bin >= {least}) AS mistaken"
    )


def _named(kinds: Mapping[str, str]) -> str:
    return ", ".join(f"{made} AS `{name}`" for name, made in kinds.items())
