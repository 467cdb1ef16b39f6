"""Estimates of people's verdicts: their mean over all traces, from labels of a sample and a judge as companion.

What is estimated: the mean verdict that people would give to all traces that the judge applies to. The judge's score f
is known of judged traces, each with the weight b = 1 / probability of being judged. Of those, traces were drawn for
labels, each with a known probability r that depends on nothing about the answer; people's verdict y is known of them.
So a labelled trace was chosen with the product of both probabilities, and weighs w = b / r. With F(x) the mean over
judged traces weighted by b, and W(x) that over labelled ones weighted by w:

    estimate = W(y) + power * (F(f) - W(f))

It is the estimate of `prediction_powered`, in which the sum over all traces is itself a weighted sum over a sample
(double sampling: Sarndal, Swensson, Wretman 1992, chapter 9). With t = sum(b) / sum(w), a judged trace adds

    power * b * (f - F(f)) + t * w * (y - W(y) - power * (f - W(f)))

to the linear form, the second term if it is labelled. The variance is the sum of squares, divided by sum(b)^2. All of
it is made of sums over traces, so that days merge by addition.

Labels are few, and products of probabilities differ much. So residuals are divided by 1 less the mean leverage, as the
jackknife does (HC3: MacKinnon, White 1985), and Student's interval has the degrees of freedom that the weights leave
(Satterthwaite 1946): sum(w^2)^2 / sum(w^4).

Traces of the sample without a label are missing at random by assumption: `coverage` says how many there are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragtide.evaluators.prediction_powered import CONFIDENCE, FEWEST_TUNED, ROUNDING, Moments, WeightedMean

FEWEST = 50  # labels from which an interval is made: of fewer thumbs, less than 94 % of the intervals hold the truth
FEWEST_FREEDOM = 5  # degrees of freedom from which an interval is made: a few heavy labels tell no variance
SAME_RATE = 1e-9  # relative: rates that differ less are the same


@dataclass(frozen=True, slots=True)
class PeopleEstimate:
    """What people would say, with its interval; `plain` is the weighted mean of the labels alone.

    `coverage` is the estimated share of the drawn traces that have a label: about 1 if all do. It is None for labels of
    several rates: a sample that was enlarged would seem complete without its second part. `saved` is the number of
    further labels that the weighted mean would need for an interval as narrow as the estimate's.
    """

    mean: WeightedMean
    plain: WeightedMean
    power: float
    judged: int
    labelled: int
    coverage: float | None
    saved: float

    def within(self, least: float, greatest: float) -> "PeopleEstimate":
        """Return the estimate within the range of the verdict."""
        return replace(self, mean=self.mean.within(least, greatest), plain=self.plain.within(least, greatest))


def row_sums(b: Any, f: Any, r: Any, y: Any, labelled: Any) -> dict[str, Any]:
    """Return what judged traces add to the sums, by name: numbers, or arrays of one number for each trace.

    `b` is 1 / probability of being judged, `f` the judge's score. `labelled` is 1 if people gave the verdict `y`, and
    the trace was drawn for that with the probability `r`; else 0, with any `y` and any `r` but 0.
    """
    w = labelled * b / r
    bw, ww = b * w, w * w
    return {
        **{"n": 1.0 + 0.0 * f, "b": b, "bf": b * f, "bb": b * b, "bbf": b * b * f, "bbff": b * b * f * f},
        **{"l": labelled, "w": w, "wf": w * f, "wy": w * y},
        **{"bw": bw, "bwf": bw * f, "bwff": bw * f * f, "bwy": bw * y, "bwfy": bw * f * y},
        **{"ww": ww, "wwf": ww * f, "wwff": ww * f * f, "wwy": ww * y, "wwyy": ww * y * y, "wwfy": ww * f * y},
        **{"www": ww * w, "wwww": ww * ww, "r": labelled * r, "rr": labelled * r * r},
    }


SUMS = tuple(row_sums(1.0, 0.0, 1.0, 0.0, 0.0))


def estimate(sums: Mapping[str, float], confidence: float = CONFIDENCE) -> PeopleEstimate | None:
    """Return the estimate of traces with these sums; None without a label."""
    if not sums["w"]:
        return None
    total, labelled = sums["b"], sums["l"]
    all_f, labelled_f, plain = sums["bf"] / total, sums["wf"] / sums["w"], sums["wy"] / sums["w"]
    moments = _moments(sums, all_f, labelled_f, plain)
    power = moments.best_power if labelled >= FEWEST_TUNED else 0.0
    variance, plain_variance = moments.variance(power) / total**2, moments.zz / total**2
    saved = labelled * (plain_variance / variance - 1) if variance > 0 and plain_variance > 0 else 0.0
    return PeopleEstimate(
        _interval(sums, plain + power * (all_f - labelled_f), variance, 2 if power else 1, confidence),
        _interval(sums, plain, plain_variance, 1, confidence),
        power=power,
        judged=round(sums["n"]),
        labelled=round(labelled),
        coverage=None if labelled * sums["rr"] > sums["r"] ** 2 * (1 + SAME_RATE) else sums["w"] / total,
        saved=saved,
    )


def _interval(
    of: Mapping[str, float], value: float, variance: float, estimated: int, confidence: float
) -> WeightedMean:
    """Make the interval. `estimated` numbers, the mean among them, came from the labels themselves."""
    freedom = of["ww"] ** 2 / of["wwww"] - estimated
    if of["l"] < FEWEST or variance <= 0 or freedom < FEWEST_FREEDOM:
        return WeightedMean(value)
    from scipy.special import stdtrit

    leverage = estimated * of["www"] / (of["ww"] * of["w"])
    half_width = math.sqrt(variance) * (1 + leverage) * float(stdtrit(freedom, (1 + confidence) / 2))
    return WeightedMean(value, value - half_width, value + half_width, freedom)


def _moments(of: Mapping[str, float], all_f: float, labelled_f: float, plain: float) -> Moments:
    """Return the sums of squares and products of the linear form's terms in f and in y."""
    t = of["b"] / of["w"]
    gg = of["bbff"] - 2 * all_f * of["bbf"] + all_f**2 * of["bb"]
    gh = of["bwff"] - (all_f + labelled_f) * of["bwf"] + all_f * labelled_f * of["bw"]
    hh = of["wwff"] - 2 * labelled_f * of["wwf"] + labelled_f**2 * of["ww"]
    gz = of["bwfy"] - all_f * of["bwy"] - plain * of["bwf"] + all_f * plain * of["bw"]
    hz = of["wwfy"] - labelled_f * of["wwy"] - plain * of["wwf"] + labelled_f * plain * of["ww"]
    zz = of["wwyy"] - 2 * plain * of["wwy"] + plain**2 * of["ww"]
    dd = t**2 * hh - 2 * t * gh + gg
    return Moments(
        zz=t**2 * zz if zz > ROUNDING * of["wwyy"] else 0.0,
        dd=dd if dd > ROUNDING * (t**2 * of["wwff"] + of["bbff"]) else 0.0,
        dz=t**2 * hz - t * gz,
    )
