"""Prediction-powered estimates: the mean score of all traffic from scores of a sample and a companion on everything.

What is estimated: the mean that the evaluator, such as a judge, would give to all traces like the window's to which it
applies. Every trace i has a cheap score f. A trace is judged with a known probability p, and then weighs w = 1 / p.
With W(x) = sum(w x) / sum(w) over judged traces:

    estimate = W(y, of scored traces) + power * (mean(f, of all traces) - W(f, of judged traces))

The first term is the weighted mean (Hajek 1971, after Horvitz and Thompson 1952). The second has the mean 0, whatever f
is, so that a companion without correlation does no harm; one that predicts y removes the part of the error that it
predicts. `power` is the one with the least variance (PPI++: Angelopoulos, Duchi, Zrnic 2023, arXiv:2311.01453, section
6; for unequal probabilities Zrnic and Candes 2024, arXiv:2403.03208). The variance is that of the estimate's linear
form (Sarndal, Swensson, Wretman 1992, chapter 5): with v = w n / sum(w), a trace adds

    power * (f - mean(f)) + v * (z - power * (f - W(f))),   z = (y - W(y)) / share of judged traces with a score

and the estimate's variance is the sum of squares, divided by n^2. Everything needed is a sum over traces (`row_sums`),
so that windows merge by addition.

Traces without an answer of the judge (a failure, a spent budget) count among all traces and not among judged ones. The
estimate then assumes that they differ from the others in f only, and in proportion.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "ppi."
CONFIDENCE = 0.95
_FEWEST = 3  # scores from which an interval is made
FEWEST_TUNED = 10  # from which the power is tuned: from fewer it would be mostly noise
ROUNDING = 1e-12  # relative: a smaller variance comes from the arithmetic


@dataclass(frozen=True, slots=True)
class WeightedMean:
    """A mean with its interval and degrees of freedom.

    The interval is None with too few scores, which leave 0 degrees of freedom, or if the scores do not vary.
    """

    value: float
    low: float | None = None
    high: float | None = None
    freedom: float = 0.0

    def within(self, least: float, greatest: float) -> "WeightedMean":
        """Return the mean and its interval within the range of the metric."""
        low, high = (None if end is None else min(max(end, least), greatest) for end in (self.low, self.high))
        return WeightedMean(min(max(self.value, least), greatest), low, high, self.freedom)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate of a window, beside the weighted mean of the scores alone.

    `power` is the weight of the companion; 0 if it does not help, or if fewer than ten scores cannot tell. `saved` is
    the number of further judged traces that the weighted mean would need for an interval as narrow as the estimate's.
    """

    mean: WeightedMean
    plain: WeightedMean
    power: float
    traces: int
    judged: int
    scored: int
    saved: float


def row_sums(cheap: Any, weight: Any, judged: Any, score: Any, scored: Any) -> dict[str, Any]:
    """Return what a trace adds to the sums of its window, by name. Numbers, or arrays of one number for each trace.

    `cheap` is the companion's score, `weight` 1 / probability. `judged` is 1 if the judge has answered, also that it
    does not apply, else 0. `scored` is 1 if it gave `score`, else 0.
    """
    j, s = judged * weight, scored * weight
    jj, ss = j * weight, s * weight
    return {
        **{"n": 1.0 + 0.0 * cheap, "f": cheap, "ff": cheap * cheap},
        **{"j": judged, "jw": j, "jwf": j * cheap, "jwff": j * cheap * cheap},
        **{"jww": jj, "jwwf": jj * cheap, "jwwff": jj * cheap * cheap},
        **{"s": scored, "sw": s, "swy": s * score, "swf": s * cheap, "swfy": s * cheap * score},
        **{"sww": ss, "swwy": ss * score, "swwyy": ss * score * score, "swwf": ss * cheap},
        "swwfy": ss * cheap * score,
    }


def parts_of(metric: str, cheap: float, weight: float, *, judged: bool, score: float | None) -> dict[str, float]:
    """Return the parts of a row of `scores` for one metric: `row_sums` that are not 0."""
    number = 0.0 if score is None else score
    sums = row_sums(cheap, weight, float(judged), number, float(score is not None))
    return {f"{PREFIX}{metric}.{name}": value for name, value in sums.items() if value}


def sums_of(metric: str, parts: Mapping[str, float]) -> dict[str, float]:
    """Return the sums of a metric from the parts of a window."""
    own = f"{PREFIX}{metric}."
    return {key.removeprefix(own): value for key, value in parts.items() if key.startswith(own)}


def add_sums(windows: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the sums of several windows together."""
    total: dict[str, float] = {}
    for sums in windows:
        for name, value in sums.items():
            total[name] = total.get(name, 0.0) + value
    return total


def estimate(sums: Mapping[str, float], confidence: float = CONFIDENCE, power: float | None = None) -> Estimate | None:
    """Return the estimate of a window with these sums; None without a score. `power` is tuned if not given."""
    of = {name: sums.get(name, 0.0) for name in row_sums(0.0, 0.0, 0.0, 0.0, 0.0)}
    n, scored = of["n"], of["s"]
    if not of["sw"] or not of["jw"] or not n:
        return None
    plain = of["swy"] / of["sw"]
    mean_f, judged_f = of["f"] / n, of["jwf"] / of["jw"]
    moments = _moments(of, plain, mean_f, judged_f)
    size = of["sw"] ** 2 / of["sww"]  # number of scores with equal weights that tell as much (Kish 1965)
    plain_variance = moments.zz / n**2
    if power is None:
        power = moments.best_power if scored >= FEWEST_TUNED else 0.0
    variance = moments.variance(power) / n**2
    value = plain + power * (mean_f - judged_f)
    saved = of["j"] * (plain_variance / variance - 1) if variance > 0 and plain_variance > 0 else 0.0
    return Estimate(
        _interval(value, variance, scored, size, 2 if power else 1, confidence),
        _interval(plain, plain_variance, scored, size, 1, confidence),
        power=power,
        traces=round(n),
        judged=round(of["j"]),
        scored=round(scored),
        saved=saved,
    )


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over traces: of z², of (v (f - W(f)) - (f - mean f))² and of its product with v z; see the module."""

    zz: float
    dd: float
    dz: float

    @property
    def best_power(self) -> float:
        """Return the power with the least variance; 0 if the companion does not vary."""
        return self.dz / self.dd if self.dd > 0 else 0.0

    def variance(self, power: float) -> float:
        """Return the sum of squares of the linear form with this power."""
        return max(0.0, self.zz - 2 * power * self.dz + power**2 * self.dd)


def _moments(of: Mapping[str, float], plain: float, mean_f: float, judged_f: float) -> Moments:
    n = of["n"]
    to_v = n / of["jw"]  # v = w * to_v
    to_z = of["jw"] / of["sw"]  # 1 / share of judged traces with a score
    gg = of["ff"] - n * mean_f**2
    gh = of["jwff"] - (mean_f + judged_f) * of["jwf"] + mean_f * judged_f * of["jw"]
    hh = of["jwwff"] - 2 * judged_f * of["jwwf"] + judged_f**2 * of["jww"]
    gz = of["swfy"] - mean_f * of["swy"] - plain * of["swf"] + mean_f * plain * of["sw"]
    hz = of["swwfy"] - judged_f * of["swwy"] - plain * of["swwf"] + judged_f * plain * of["sww"]
    zz = of["swwyy"] - 2 * plain * of["swwy"] + plain**2 * of["sww"]
    dd = to_v**2 * hh - 2 * to_v * gh + gg
    scale = to_v**2 * of["jwwff"] + of["ff"]
    return Moments(
        zz=(to_v * to_z) ** 2 * zz if zz > ROUNDING * of["swwyy"] else 0.0,
        dd=dd if dd > ROUNDING * scale else 0.0,
        dz=to_z * (to_v**2 * hz - to_v * gz),
    )


def _interval(
    value: float, variance: float, scored: float, size: float, estimated: int, confidence: float
) -> WeightedMean:
    """Make Student's interval. `estimated` numbers, the mean among them, came from the scores themselves."""
    freedom = size - estimated
    if scored < _FEWEST or freedom < 1:
        return WeightedMean(value)
    if variance <= 0:
        return WeightedMean(value, freedom=freedom)
    from scipy.special import stdtrit

    half_width = math.sqrt(variance * size / freedom) * float(stdtrit(freedom, (1 + confidence) / 2))
    return WeightedMean(value, value - half_width, value + half_width, freedom)
