"""SQL of samples for labelling: which judged traces are drawn, and the sums that estimate what people would say.

A trace is drawn by a hash of its id, which depends neither on the answer nor on the choice of judged traces. So the
sample of a smaller rate is part of a larger one's, and both probabilities multiply.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ragtide.drift.stats import CONFIDENCE, z_score
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.label_estimates import (
    FEWEST,
    FEWEST_FREEDOM,
    SAME_RATE,
    SUMS,
    PeopleEstimate,
    estimate,
)
from ragtide.evaluators.prediction_powered import FEWEST_TUNED, ROUNDING
from ragtide.sinks.clickhouse.database import Database


class LabelVerdict(NamedTuple):
    """A verdict of labels in SQL: its value, and the condition that a label has one. `is_share`: it is 0 or 1."""

    value: str
    condition: str
    is_share: bool


THUMBS = LabelVerdict("if(thumbs = 'up', 1., 0.)", "thumbs != ''", is_share=True)
SCORES = LabelVerdict("assumeNotNull(score)", "isNotNull(score)", is_share=False)
_IN_SAMPLE = "sipHash64('ragtide labels', trace_id) < {rate:Float64} * 18446744073709551616."
_OF_EVALUATOR = (
    "run_id = {run:String} AND evaluator = {evaluator:String} AND status = 'scored' "
    "AND ({app:String} = '' OR app = {app:String}) AND weight > 0 AND time >= {since:DateTime64(3, 'UTC')}"
)
_OF_METRIC = f"{_OF_EVALUATOR} AND time <= {{until:DateTime64(3, 'UTC')}} AND mapContains(metrics, {{key:String}})"
_LABELLED = "sample_rate > 0 AND sample_evaluator = {evaluator:String}"
# Columns that the letters of a sum's name stand for.
_FACTORS = {
    "b": "stands_for",
    "f": "judges_score",
    "l": "is_labelled",
    "r": "label_rate",
    "w": "label_stands_for",
    "y": "people_verdict",
}
_Z = z_score(CONFIDENCE)
_END = datetime(2200, 1, 1, tzinfo=UTC)  # after every event


class JudgedTraces(NamedTuple):
    """Traces that a metric scored: of a run, of one application or all (None), in an interval [since, until]."""

    metric: MetricRef
    run_id: str
    app: str | None
    since: datetime
    until: datetime = _END

    @property
    def parameters(self) -> dict[str, object]:
        """Parameters of statements about them."""
        return {
            "key": self.metric.metric.key,
            "evaluator": self.metric.evaluator.id,
            "run": self.run_id,
            "app": self.app or "",
            "since": self.since,
            "until": self.until,
        }


def draw_traces(database: Database, judged: JudgedTraces, rate: float, limit: int) -> list[str]:
    """Return ids of traces in the sample of this rate that have no label of the evaluator's samples, newest first.

    Drawn are traces that the evaluator scored, so that the labels serve all its metrics.
    """
    rows = database.rows(
        f"""
        SELECT trace_id FROM scores FINAL
        WHERE {_OF_EVALUATOR} AND {_IN_SAMPLE}
            AND trace_id NOT IN (SELECT trace_id FROM labels WHERE {_LABELLED} AND (thumbs != '' OR isNotNull(score)))
        GROUP BY trace_id ORDER BY max(time) DESC, trace_id LIMIT {{limit:UInt64}}
        """,
        {**judged.parameters, "rate": rate, "limit": limit},
    )
    return [row["trace_id"] for row in rows]


def labelled_interval(database: Database, judged: JudgedTraces, good_from: float | None) -> JudgedTraces:
    """Restrict the traces to the interval from the first to the last one with a label of a sample.

    Before and after it nothing was drawn, or nobody has labelled yet: those traces do not lack labels.
    """
    row = database.rows(
        f"SELECT count() AS n, min(time) AS first, max(time) AS last FROM scores FINAL WHERE {_OF_METRIC} "
        f"AND trace_id IN (SELECT trace_id FROM labels FINAL WHERE {_LABELLED} AND {_verdict(good_from).condition})",
        {**judged.parameters, "good": good_from or 0.0},
    )[0]
    return judged._replace(since=row["first"], until=row["last"]) if row["n"] else judged


def estimate_people(database: Database, judged: JudgedTraces, good_from: float | None) -> PeopleEstimate | None:
    """Estimate the share of answers that people would call good, by thumbs or by scores from `good_from` on.

    None without a label of a sample.
    """
    rows = database.rows(
        label_sums(
            f"SELECT trace_id, evaluator, metrics[{{key:String}}] AS score_of_judge, weight FROM scores FINAL "
            f"WHERE {_OF_METRIC}",
            "labels",
            _verdict(good_from),
        ),
        {**judged.parameters, "good": good_from or 0.0},
    )
    made = estimate(rows[0]) if rows and rows[0]["n"] else None
    return None if made is None else made.within(0.0, 1.0)


def _verdict(good_from: float | None) -> LabelVerdict:
    if good_from is None:
        return THUMBS
    return LabelVerdict("if(score >= {good:Float64}, 1., 0.)", SCORES.condition, is_share=True)


def label_sums(scores: str, labels: str, verdict: LabelVerdict, by: Sequence[str] = ()) -> str:
    """SELECT of the sums of `evaluators.label_estimates`, one row per combination of the columns `by`.

    `scores` is a SELECT of `trace_id`, `evaluator`, `score_of_judge`, `weight` and these columns, `labels` the table's
    name. A label counts for the evaluator among whose traces it was drawn: another one chose its traces otherwise. Of a
    trace, the newest such label counts.
    """
    # A name is the product of its letters.
    sums = ", ".join(
        "count() AS n" if name == "n" else f"sum({' * '.join(_FACTORS[letter] for letter in name)}) AS {name}"
        for name in SUMS
    )
    columns = "".join(f"{column}, " for column in by)
    grouped = f" GROUP BY {', '.join(by)}" if by else ""
    return f"""
        SELECT {columns}{sums} FROM (
            SELECT {columns}toFloat64(weight) AS stands_for, score_of_judge AS judges_score,
                label_rate > 0 ? 1. : 0. AS is_labelled, label_rate > 0 ? stands_for / label_rate : 0.
                AS label_stands_for, label_rate, people_verdict
            FROM ({scores}) AS judged
            LEFT JOIN (
                SELECT trace_id, sample_evaluator AS evaluator,
                    argMax((toFloat64({verdict.value}), sample_rate), (version, partition)) AS newest,
                    newest.1 AS people_verdict, newest.2 AS label_rate
                FROM {labels} FINAL WHERE sample_rate > 0 AND {verdict.condition} GROUP BY trace_id, evaluator
            ) AS labelled USING (trace_id, evaluator)
            WHERE weight > 0
        ){grouped}"""


def people_estimates(sums: str, verdict: LabelVerdict, by: Sequence[str] = ()) -> str:
    """SELECT of the estimates of `label_sums`, as `evaluators.label_estimates` makes them; no row without a label.

    Columns: those of `by`, `estimate`, `estimate_low`, `estimate_high` (NULL: no interval), `labels_mean` (of the
    labels alone), `labels`, `judged`, `coverage` (NULL: labels of several rates). Student's quantile is Cornish and
    Fisher's expansion of it, which is within 0.2 % of it from `FEWEST_FREEDOM` on.
    """
    steps = [
        {"t": "b / w", "all_f": "bf / b", "labelled_f": "wf / w", "labels_mean": "wy / w"},
        {
            "gg": "bbff - 2 * all_f * bbf + all_f * all_f * bb",
            "gh": "bwff - (all_f + labelled_f) * bwf + all_f * labelled_f * bw",
            "hh": "wwff - 2 * labelled_f * wwf + labelled_f * labelled_f * ww",
            "gz": "bwfy - all_f * bwy - labels_mean * bwf + all_f * labels_mean * bw",
            "hz": "wwfy - labelled_f * wwy - labels_mean * wwf + labelled_f * labels_mean * ww",
            "raw_zz": "wwyy - 2 * labels_mean * wwy + labels_mean * labels_mean * ww",
        },
        {
            "zz": f"if(raw_zz > {ROUNDING!r} * wwyy, t * t * raw_zz, 0.)",
            "dd": "t * t * hh - 2 * t * gh + gg",
            "dz": "t * t * hz - t * gz",
        },
        {"power": f"if(l >= {FEWEST_TUNED} AND dd > {ROUNDING!r} * (t * t * wwff + bbff), dz / dd, 0.)"},
        {
            "variance": "greatest(0., zz - 2 * power * dz + power * power * dd) / (b * b)",
            "estimated": "if(power = 0, 1, 2)",
            "freedom": "ww * ww / wwww - estimated",
        },
        {
            "centre": "labels_mean + power * (all_f - labelled_f)",
            "quantile": f"{_Z!r} + {(_Z**3 + _Z) / 4!r} / freedom + "
            f"{(5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96!r} / (freedom * freedom)",
            "reach": "sqrt(variance) * (1 + estimated * www / (ww * w)) * quantile",
            "has_interval": f"l >= {FEWEST} AND variance > 0 AND freedom >= {FEWEST_FREEDOM}",
        },
    ]
    rows = f"{sums} HAVING w > 0"
    for step in steps:
        rows = f"SELECT *, {', '.join(f'{made} AS {name}' for name, made in step.items())} FROM ({rows})"
    columns = "".join(f"{column}, " for column in by)
    numbers = ["centre", "centre - reach", "centre + reach"]
    if verdict.is_share:
        numbers = [f"least(greatest({number}, 0.), 1.)" for number in numbers]
    value, low, high = numbers
    return f"""
        SELECT {columns}{value} AS estimate, if(has_interval, {low}, NULL) AS estimate_low,
            if(has_interval, {high}, NULL) AS estimate_high, labels_mean, toUInt64(l) AS labels,
            toUInt64(n) AS judged, if(l * rr > r * r * (1 + {SAME_RATE!r}), NULL, w / b) AS coverage
        FROM ({rows})"""
