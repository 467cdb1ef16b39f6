"""SQL of what people would say of all answers, from labels of a sample and the chosen metric as companion."""

from ragtide.dashboards.metric_scale import EVALUATOR, KEY
from ragtide.dashboards.sql import HERE, Tables
from ragtide.drift.label_sample import SCORES, THUMBS, LabelVerdict, label_sums, people_estimates

_VERDICTS = {"thumbs up": THUMBS, "score": SCORES}


def people_in_range(tables: Tables) -> str:
    """One row per kind of verdict over the time range: the estimate, its interval, and what it rests on."""
    rows = (
        f"SELECT {number} AS number, '{kind}' AS verdict, * FROM ({_estimates(tables, verdict)})"
        for number, (kind, verdict) in enumerate(_VERDICTS.items())
    )
    return (
        "SELECT verdict, estimate AS `people would say`, estimate_low AS `at least`, estimate_high AS `at most`, "
        "labels_mean AS `labels alone`, labels, judged AS `judged answers`, coverage AS `labelled of the sample` "
        f"FROM ({' UNION ALL '.join(rows)}) ORDER BY number"
    )


def people_by_day(tables: Tables) -> str:
    """A time series: the share of thumbs up that people would give, by day, with its interval."""
    estimates = _estimates(tables, THUMBS, day=True)
    return (
        "SELECT toDateTime(day) AS time, estimate_low AS `at least`, estimate_high AS `at most`, "
        f"estimate AS `people would say` FROM ({estimates}) ORDER BY time"
    )


def _estimates(tables: Tables, verdict: LabelVerdict, day: bool = False) -> str:
    day_column = "toStartOfDay(time) AS day, " if day else ""
    scores = (
        f"SELECT {day_column}trace_id, evaluator, metrics[{KEY}] AS score_of_judge, weight "
        f"FROM {tables.name('scores')} FINAL WHERE {HERE} AND evaluator = {EVALUATOR} "
        f"AND $__timeFilter(time) AND status = 'scored' AND mapContains(metrics, {KEY})"
    )
    by = ["day"] if day else []
    sums = label_sums(scores, tables.name("labels"), verdict, by)
    return " ".join(people_estimates(sums, verdict, by).split())
