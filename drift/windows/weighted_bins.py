"""Weighted counts of scores by bin, for shares of sampled judges.

A judged trace stands for w = 1 / probability traces. Rows of `scores` carry w and w² in `parts`, by metric and bin of
the histogram, so that windows of every size and segment have their sums. With S the sum over bad records, T over all:

    share = S(w) / T(w),   variance = ((1 - 2 share) S(w²) + share² T(w²)) / T(w)²

That is Hajek's estimate of a share and its linearised variance (Sarndal, Swensson, Wretman 1992, chapter 5). The
interval is Wilson's, of as many records as would have this variance if they were a simple random sample, with Student's
quantile for T(w)² / T(w²) - 1 degrees of freedom (Kish 1965).
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.stats import CONFIDENCE, Interval, student_quantile, weighted_wilson
from ragtide.drift.windows.histogram import Scale
from ragtide.drift.windows.metrics import MetricRef
from ragtide.evaluators.spec import Metric

_WEIGHTS, _SQUARES = "weights", "squared_weights"
_ROUNDING = 1e-9


class WeightedShare(NamedTuple):
    """The share of bad records, each counted by its weight, with its 95 % interval and degrees of freedom."""

    value: float
    interval: Interval
    freedom: float


def weight_parts(metric: Metric, score: float, weight: float) -> dict[str, float]:
    """Return the parts of a row that gave this score, by metric and bin."""
    where = f"{metric.key}.{Scale.of(metric).bin(score)}"
    return {f"{_WEIGHTS}.{where}": weight, f"{_SQUARES}.{where}": weight * weight}


def weighted_share(
    metric: MetricRef, parts: Mapping[str, float], records: int, bad: Callable[[Mapping[int, float]], float]
) -> WeightedShare | None:
    """Return the share of bad ones among so many records; `bad` adds up the values of bad bins.

    None where the parts have no weights, or all records have the same one: then counts tell the share.
    """
    weights, squares = (_bins(name, metric.metric.key, parts) for name in (_WEIGHTS, _SQUARES))
    total, total_squares = sum(weights.values()), sum(squares.values())
    if not total or records * total_squares <= total**2 * (1 + _ROUNDING):
        return None
    share = bad(weights) / total
    variance = ((1 - 2 * share) * bad(squares) + share**2 * total_squares) / total**2
    same_weight = total**2 / total_squares  # as many records of one weight tell as much
    size, freedom = share * (1 - share) / variance if variance > 0 else same_weight, same_weight - 1
    if freedom < 1:  # one heavy record tells nothing
        return WeightedShare(share, Interval(0.0, 1.0), freedom)
    return WeightedShare(share, weighted_wilson(share, size, student_quantile((1 + CONFIDENCE) / 2, freedom)), freedom)


def _bins(name: str, key: str, parts: Mapping[str, float]) -> dict[int, float]:
    own = f"{name}.{key}."
    return {int(part.removeprefix(own)): value for part, value in parts.items() if part.startswith(own)}


def weighted_bad_share(metric: MetricRef, min_bin: int, max_bin: int) -> str:
    """Expression on rows of `windows` of the metric: the weighted share beyond these bins; NULL without weights."""
    key = sql.text(metric.metric.key)
    return f"sum({sum_weights(key, min_bin, max_bin)}) / nullIf(sum({sum_weights(key)}), 0)"


def sum_weights(key: str, min_bin: int | str | None = None, max_bin: int | str = "", *, squared: bool = False) -> str:
    """Expression on rows of `windows`: the weights of a metric's records, or their squares; with bins, beyond them.

    The arguments are expressions; `key` is the metric's, without the evaluator.
    """
    own = f"concat({sql.text(f'{_SQUARES if squared else _WEIGHTS}.')}, {key}, '.')"
    chosen = f"startsWith(part, {own})"
    if min_bin is not None:
        bin_ = f"toInt32OrZero(substring(part, length({own}) + 1))"
        chosen += f" AND ({bin_} < {min_bin} OR {bin_} > {max_bin})"
    return f"arraySum((part, n) -> if({chosen}, n, 0.), mapKeys(parts), mapValues(parts))"
