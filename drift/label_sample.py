"""SQL of samples for labelling: which judged traces are drawn, and the sums that estimate what people would say.

A trace is drawn by a hash of its id, which depends neither on the answer nor on the choice of judged traces. So the
sample of a smaller rate is part of a larger one's, and both probabilities multiply.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.stats import CONFIDENCE, z_score
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.label_estimates import FEWEST, SUMS, PeopleEstimate, estimate
from ragtide.evaluators.prediction_powered import FEWEST_TUNED, ROUNDING
from ragtide.sinks.clickhouse.database import Database

THUMBS = "if(thumbs = 'up', 1., 0.)", "thumbs != ''"
SCORES = "assumeNotNull(score)", "isNotNull(score)"
_DRAWN = "sipHash64('ragtide labels', trace_id) < {rate:Float64} * 18446744073709551616."
_SINCE = "time >= {since:DateTime64(3, 'UTC')}"
_OF_METRIC = (
    "run_id = {run:String} AND evaluator = {evaluator:String} AND status = 'scored' "
    "AND ({app:String} = '' OR app = {app:String}) AND mapContains(metrics, {key:String})"
)
# Columns that the letters of a sum's name stand for.
_FACTORS = {"b": "stands_for", "f": "judges_score", "l": "is_labelled", "w": "label_stands_for", "y": "people_said"}
_Z = z_score(CONFIDENCE)


class JudgedTraces(NamedTuple):
    """Traces that a metric scored: of a run, of one application or all (None), since a time."""

    metric: MetricRef
    run_id: str
    app: str | None
    since: datetime

    @property
    def parameters(self) -> dict[str, object]:
        """Parameters of statements about them."""
        return {
            "key": self.metric.metric.key,
            "evaluator": self.metric.evaluator.id,
            "run": self.run_id,
            "app": self.app or "",
            "since": self.since,
        }


def draw_traces(database: Database, judged: JudgedTraces, rate: float, limit: int) -> list[str]:
    """Return ids of judged traces that are drawn at this rate and have no label of a sample yet, newest first."""
    rows = database.rows(
        f"""
        SELECT trace_id FROM scores FINAL
        WHERE {_OF_METRIC} AND {_SINCE} AND weight > 0 AND {_DRAWN}
            AND trace_id NOT IN (
                SELECT trace_id FROM labels WHERE sample_rate > 0 AND (thumbs != '' OR isNotNull(score))
            )
        GROUP BY trace_id ORDER BY max(time) DESC, trace_id LIMIT {{limit:UInt64}}
        """,
        {**judged.parameters, "rate": rate, "limit": limit},
    )
    return [row["trace_id"] for row in rows]


def estimate_people(database: Database, judged: JudgedTraces, good_from: float | None) -> PeopleEstimate | None:
    """Estimate the share of answers that people would call good, by thumbs or by scores from `good_from` on.

    None without a label of a sample.
    """
    said, given = THUMBS if good_from is None else ("if(score >= {good:Float64}, 1., 0.)", SCORES[1])
    rows = database.rows(
        label_sums(
            f"SELECT trace_id, metrics[{{key:String}}] AS score_of_judge, weight FROM scores FINAL "
            f"WHERE {_OF_METRIC} AND {_SINCE}",
            "labels",
            said,
            given,
        ),
        {**judged.parameters, "good": good_from or 0.0},
    )
    return estimate(rows[0]) if rows and rows[0]["n"] else None


def label_sums(scores: str, labels: str, said: str, given: str, by: Sequence[str] = ()) -> str:
    """SELECT of the sums of `evaluators.label_estimates`, one row per combination of the columns `by`.

    `scores` is a SELECT of `trace_id`, `score_of_judge`, `weight` and these columns, `labels` the table's name. `said`
    is the verdict of a label as a number, `given` the condition that it has one. Of a trace, the newest label of the
    sample counts.
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
                rate > 0 ? 1. : 0. AS is_labelled, rate > 0 ? stands_for / rate : 0. AS label_stands_for,
                verdict AS people_said
            FROM ({scores}) AS judged
            LEFT JOIN (
                SELECT trace_id, argMax((toFloat64({said}), sample_rate), (version, partition)) AS newest,
                    newest.1 AS verdict, newest.2 AS rate
                FROM {labels} FINAL WHERE sample_rate > 0 AND {given} GROUP BY trace_id
            ) AS labelled USING (trace_id)
            WHERE weight > 0
        ){grouped}"""


def people_estimates(sums: str, by: Sequence[str] = ()) -> str:
    """SELECT of the estimates of `label_sums`, as `evaluators.label_estimates` makes them; no row without a label.

    Columns: those of `by`, `estimate`, `estimate_low`, `estimate_high` (NULL: no interval), `labels_mean` (of the
    labels alone), `labels`, `judged`, `coverage`. Student's quantile is Cornish and Fisher's expansion of it.
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
            "estimate": "labels_mean + power * (all_f - labelled_f)",
            "quantile": f"{_Z!r} + {(_Z**3 + _Z) / 4!r} / freedom + "
            f"{(5 * _Z**5 + 16 * _Z**3 + 3 * _Z) / 96!r} / (freedom * freedom)",
            "reach": "sqrt(variance) * (1 + estimated * www / (ww * w)) * quantile",
            "has_interval": f"l >= {FEWEST} AND variance > 0 AND freedom > 0",
        },
    ]
    rows = f"{sums} HAVING w > 0"
    for step in steps:
        rows = f"SELECT *, {', '.join(f'{made} AS {name}' for name, made in step.items())} FROM ({rows})"
    columns = "".join(f"{column}, " for column in by)
    return f"""
        SELECT {columns}estimate, if(has_interval, estimate - reach, NULL) AS estimate_low,
            if(has_interval, estimate + reach, NULL) AS estimate_high, labels_mean, toUInt64(l) AS labels,
            toUInt64(n) AS judged, w / b AS coverage
        FROM ({rows})"""
