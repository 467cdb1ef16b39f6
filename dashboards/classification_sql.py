"""SQL of a classifier's counts: confusion, curves and examples, drawn from the parts that windows have stored.

What the parts are called, and how exact counts of scores are, is told in `ragtide.evaluators.classification`.
"""

from collections.abc import Sequence

from ragtide.dashboards.parts_sql import newest, newest_ids, summed_parts
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.trace_links import trace_link_sql
from ragtide.dashboards.variable_sql import value
from ragtide.drift.sql import text
from ragtide.evaluators.classification.score_bins import BINS
from ragtide.evaluators.parts import POOLED

CLASSIFICATION = "classification"
_CARRIER = f"{CLASSIFICATION}.accuracy"
_KINDS = {"tp": "tp", "fp": "fp: misclassification", "missed": "fn: misclassification", "lost": "fn: no prediction"}


def confusion(tables: Tables) -> str:
    """Expected class, predicted class and the number of single-label records, with those without any prediction.

    A wrong answer that was stored hidden is shown by its name where it is a class that records expected.
    """
    hidden = "concat('#', lower(substring(hex(SHA256(key[2])), 1, 16)))"
    return (
        "SELECT expected, if(known.label = '', found, known.label) AS predicted, sum(n) AS records FROM ("
        "SELECT key[2] AS expected, if(key[1] = 'lost', '(no prediction)', key[3]) AS found, n "
        f"FROM ({_counts(tables)}) WHERE key[1] IN ('confusion', 'lost')) AS counted "
        f"LEFT JOIN (SELECT {hidden} AS hidden, key[2] AS label FROM ({_counts(tables)}) WHERE key[1] = 'truth') "
        "AS known ON found = hidden GROUP BY expected, predicted ORDER BY expected, predicted"
    )


def outcomes(tables: Tables) -> str:
    """Outcomes of records over time by `categories`: right, wrong, or without a prediction."""
    kinds = ("correct", "misclassification", "no_prediction")
    each = ", ".join(f"sum(category_counts[{text(kind)}]) AS `{kind.replace('_', ' ')}`" for kind in kinds)
    windows = tables.windows([f"{CLASSIFICATION}.outcome"])
    return f"SELECT $__timeInterval(start) AS time, {each} {windows} GROUP BY time ORDER BY time"


def precision_recall(tables: Tables, thresholds: Sequence[int]) -> str:
    """Class, recall and precision at these thresholds (hundredths), for a curve; no point where one is 0 / 0."""
    return (
        f"SELECT class, tp / expected AS recall, tp / (tp + fp) AS precision FROM ({_at(tables, thresholds)}) "
        "WHERE expected > 0 AND tp + fp > 0 ORDER BY class, threshold DESC"
    )


def roc(tables: Tables) -> str:
    """Class, false and true positive rate at every threshold that counts tell apart: the area under it is `roc_auc`."""
    return (
        "SELECT class, fp / others AS `false positive rate`, tp / expected AS `true positive rate` "
        f"FROM ({_at(tables, range(BINS + 2))}) WHERE expected > 0 AND others > 0 ORDER BY class, threshold DESC"
    )


def counts_by_class(tables: Tables, thresholds: Sequence[int]) -> str:
    """Each class as a binary problem of its own: the counts at each threshold, by kind of error."""
    return (
        "SELECT class, threshold / 100 AS threshold, tp, fp AS `fp: misclassification`, "
        "topped - tp AS `fn: misclassification`, expected - topped AS `fn: no prediction`, "
        "others - fp AS tn, tp / nullIf(tp + fp, 0) AS precision, tp / nullIf(expected, 0) AS recall, "
        "2 * tp / nullIf(tp + fp + expected, 0) AS f1 "
        f"FROM ({_at(tables, thresholds)}) ORDER BY class, threshold"
    )


def examples(tables: Tables, thresholds: Sequence[int], most: int, trace_url: str) -> str:
    """Ids of the newest traces of each kind, by class and threshold, among the newest records of the time range."""
    records = newest(tables, CLASSIFICATION, with_part="scored")
    keys = f"SELECT trace_id, time AS at, splitByChar('\\t', arrayJoin(mapKeys(parts))) AS key FROM ({records})"
    of_class = (
        f"SELECT trace_id, any(at) AS time, key[2] AS class, {_bin('pos')} AS pos, {_bin('top')} AS top, "
        f"{_bin('neg')} AS neg FROM (SELECT *, splitByChar('.', key[1]) AS name FROM ({keys})) "
        "WHERE length(name) = 2 GROUP BY trace_id, class"
    )
    kinds = (
        f"multiIf(pos >= t, {text(_KINDS['tp'])}, neg >= t, {text(_KINDS['fp'])}, pos < 0, '', "
        f"top >= t, {text(_KINDS['missed'])}, {text(_KINDS['lost'])})"
    )
    listed = ", ".join(map(str, thresholds))
    return (
        f"SELECT class, t / 100 AS threshold, {kinds} AS kind, {newest_ids(most)} AS trace, "
        f"{trace_link_sql(value('app'), 'trace', trace_url)} AS trace_link "
        f"FROM ({of_class}) ARRAY JOIN [{listed}] AS t WHERE kind != '' GROUP BY class, t, kind "
        "ORDER BY class, threshold, kind LIMIT 5000"
    )


def _bin(kind: str) -> str:
    """The bin of a record's score of that kind, -1 where it has none."""
    return f"maxIf(toInt16(name[2]), name[1] = {text(kind)}) - (countIf(name[1] = {text(kind)}) = 0)"


def _counts(tables: Tables) -> str:
    return summed_parts(tables, _CARRIER)


def _at(tables: Tables, thresholds: Sequence[int]) -> str:
    """Per class and threshold the records with at least that score of the class: `tp` that expected it, `fp` others.

    `topped` expected it, and had at least that score of any class; `expected` and `others` are all records with scores
    that did and did not expect it. Those without a score of the class have 0 there.
    """
    bins = (
        "SELECT key[2] AS class, splitByChar('.', key[1])[1] AS kind, "
        f"toInt16OrZero(splitByChar('.', key[1])[2]) AS bin, n FROM ({_counts(tables)}) "
        f"WHERE kind IN ('pos', 'neg', 'top') AND class != {text(POOLED)}"
    )
    listed = ", ".join(map(str, thresholds))
    return (
        "SELECT class, threshold, sumIf(n, kind = 'pos' AND bin >= threshold) AS tp, "
        "if(threshold = 0, others, sumIf(n, kind = 'neg' AND bin >= threshold)) AS fp, "
        "sumIf(n, kind = 'top' AND bin >= threshold) AS topped, "
        "sumIf(n, kind = 'pos') AS expected, any(scored) - expected AS others "
        f"FROM ({bins}) AS counted CROSS JOIN (SELECT sum(n) AS scored FROM ({_counts(tables)}) "
        f"WHERE key[1] = 'scored') AS total ARRAY JOIN [{listed}] AS threshold GROUP BY class, threshold"
    )
