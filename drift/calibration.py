"""Compare a metric with people's labels of the same answers, and propose the threshold that agrees best with them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.drift.stats import CONFIDENCE, Agreements, Interval, Kappa, Share, cohens_kappa, wilson
from ragtide.drift.windows import MetricRef
from ragtide.sinks.clickhouse.database import Database

MAX_ANSWERS = 20_000  # the newest
FEWEST = 10  # liked ones, and disliked ones: fewer choose no threshold
_FOLDS = 5
_STEPS = 100  # thresholds of a bounded metric: windows count records in steps of a hundredth of its range
_SEED = 1


class LabelledScore(NamedTuple):
    """A score, and whether people say that the answer is bad."""

    value: float
    is_bad: bool


class AtThreshold(NamedTuple):
    """A metric that calls answers bad beyond a threshold, compared with people.

    `precision`: of the answers that it calls bad, those that people call bad; `recall`: of those that people call bad,
    the ones that it does. None where there is none.
    """

    threshold: float
    cases: Agreements
    kappa: Kappa | None
    precision: "ShareEstimate | None"
    recall: "ShareEstimate | None"


class ShareEstimate(NamedTuple):
    """A share and its interval."""

    value: float
    interval: Interval


class Calibration(NamedTuple):
    """The metric at its threshold now and at the proposed one; None if there is no threshold, or too few labels.

    `kappa_elsewhere` is that of proposed thresholds on answers which did not choose them: five folds.
    """

    answers: int
    bad: int
    now: AtThreshold | None
    proposed: AtThreshold | None
    kappa_elsewhere: Kappa | None


def load_labelled_scores(
    database: Database, metric: MetricRef, run_id: str, app: str | None, since: datetime, good_from: float | None
) -> list[LabelledScore]:
    """Load the scores since then whose answers have labels, newest traces first. Of a trace the newest label counts.

    Labels are thumbs; with `good_from` people's scores, which are good from there on.
    """
    label, given = (
        ("thumbs = 'down'", "thumbs != ''") if good_from is None else ("score < {good:Float64}", "isNotNull(score)")
    )
    rows = database.rows(
        f"""
        SELECT metrics[{{key:String}}] AS value, said AS is_bad
        FROM scores FINAL
        INNER JOIN (
            SELECT trace_id, argMax(assumeNotNull({label}), (version, partition)) AS said
            FROM labels FINAL WHERE {given} GROUP BY trace_id
        ) AS labelled USING (trace_id)
        WHERE run_id = {{run:String}} AND evaluator = {{evaluator:String}} AND status = 'scored'
            AND ({{app:String}} = '' OR app = {{app:String}}) AND time >= {{since:DateTime64(3, 'UTC')}}
            AND mapContains(metrics, {{key:String}})
        ORDER BY time DESC, trace_id LIMIT {MAX_ANSWERS}
        """,
        {
            "key": metric.metric.key,
            "evaluator": metric.evaluator.id,
            "run": run_id,
            "app": app or "",
            "since": since,
            "good": good_from or 0.0,
        },
    )
    return [LabelledScore(float(row["value"]), bool(row["is_bad"])) for row in rows]


def calibrate(metric: MetricRef, scores: Sequence[LabelledScore], threshold: float | None) -> Calibration:
    """Compare the metric with the labels at its threshold, if it has one, and at the one with the highest kappa."""
    values = np.array([score.value for score in scores], np.float64)
    is_bad = np.array([score.is_bad for score in scores], np.bool_)
    now = None if threshold is None or not len(scores) else _compare(metric, values, is_bad, threshold)
    proposed, elsewhere = None, None
    if min(is_bad.sum(), (~is_bad).sum()) >= FEWEST and np.ptp(values) > 0:
        proposed = _compare(metric, values, is_bad, _best_threshold(metric, values, is_bad, threshold))
        elsewhere = cohens_kappa(_cases_elsewhere(metric, values, is_bad, threshold))
    return Calibration(len(scores), int(is_bad.sum()), now, proposed, elsewhere)


def agreement_at(metric: MetricRef, scores: Sequence[LabelledScore], threshold: float) -> AtThreshold:
    """Compare the metric with the labels at a threshold."""
    values = np.array([score.value for score in scores], np.float64)
    return _compare(metric, values, np.array([score.is_bad for score in scores], np.bool_), threshold)


def _compare(
    metric: MetricRef, values: npt.NDArray[np.float64], is_bad: npt.NDArray[np.bool_], threshold: float
) -> AtThreshold:
    cases = _cases(_calls_bad(metric, values, threshold), is_bad)
    return AtThreshold(
        threshold,
        cases,
        cohens_kappa(cases),
        _share(cases.both, cases.both + cases.first_only),
        _share(cases.both, cases.both + cases.second_only),
    )


def _share(hits: int, n: int) -> ShareEstimate | None:
    return ShareEstimate(hits / n, wilson(Share(hits, n), CONFIDENCE)) if n else None


def _cases(called: npt.NDArray[np.bool_], is_bad: npt.NDArray[np.bool_]) -> Agreements:
    pairs = (called & is_bad, called & ~is_bad, ~called & is_bad, ~called & ~is_bad)
    return Agreements(*(int(pair.sum()) for pair in pairs))


def _calls_bad(metric: MetricRef, values: npt.NDArray[np.float64], threshold: float) -> npt.NDArray[np.bool_]:
    """Return which scores are bad: those on the wrong side; a score equal to the threshold is good."""
    called: npt.NDArray[np.bool_] = values < threshold if metric.metric.better == "higher" else values > threshold
    return called


def _best_threshold(
    metric: MetricRef, values: npt.NDArray[np.float64], is_bad: npt.NDArray[np.bool_], now: float | None
) -> float:
    """Return the threshold with the highest kappa; of equal ones the nearest to that of now, else the middle one."""
    candidates = _candidates(metric, values)
    found = [cohens_kappa(_cases(_calls_bad(metric, values, one), is_bad)) for one in candidates]
    kappas = np.array([-1.0 if kappa is None else kappa.value for kappa in found])
    best = candidates[kappas >= kappas.max() - 1e-12]
    return float(best[len(best) // 2] if now is None else best[np.argmin(np.abs(best - now))])


def _candidates(metric: MetricRef, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return thresholds in order: hundredths of the range, or where the values of an unbounded metric lie."""
    scale = metric.scale
    if scale.bounded:
        steps = np.arange(_STEPS + 1) / _STEPS
        hundredths: npt.NDArray[np.float64] = np.round(scale.low + steps * (scale.high - scale.low), 10)
        return hundredths
    return np.unique(np.quantile(values, np.arange(_STEPS + 1) / _STEPS, method="nearest"))


def _cases_elsewhere(
    metric: MetricRef, values: npt.NDArray[np.float64], is_bad: npt.NDArray[np.bool_], now: float | None
) -> Agreements:
    """Return the cases of each fifth of the answers at the threshold that the other four fifths choose."""
    fold = np.empty(len(values), np.int64)
    rng = np.random.default_rng(_SEED)
    for those in (is_bad, ~is_bad):  # each fold has its share of bad ones
        fold[those] = rng.permutation(int(those.sum())) % _FOLDS
    found: list[Agreements] = []
    for number in range(_FOLDS):
        own = fold == number
        threshold = _best_threshold(metric, values[~own], is_bad[~own], now)
        found.append(_cases(_calls_bad(metric, values[own], threshold), is_bad[own]))
    return _added(found)


def _added(found: Iterable[Agreements]) -> Agreements:
    return Agreements(*(sum(counts) for counts in zip(*found, strict=True)))
