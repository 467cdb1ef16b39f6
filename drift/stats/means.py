"""Means and their differences, paired and unpaired, with confidence intervals and p-values. Pure.

Paired (Student): d = mean(b - a), s its standard deviation, interval d ± t(n - 1) s / sqrt(n).
Unpaired (Welch 1947): d = mean(b) - mean(a), interval d ± t(v) sqrt(e), where e = va / na + vb / nb and
1 / v = r² / (na - 1) + (1 - r)² / (nb - 1), r = va / na / e (Satterthwaite). p is two-sided, of the same t.

If values do not vary, t would call two records certain. Then there is no interval, and p comes from another test.
Paired: the sign test, 2 · 2^-n. Unpaired: Fisher's bound for values that separate the samples, 2 / C(na + nb, na).
"""

import math
from dataclasses import dataclass

from ragtide.drift.stats.proportions import CONFIDENCE, Interval

_ROUNDING = 1e-9  # relative: a smaller standard deviation comes from the arithmetic, not from the values


@dataclass(frozen=True, slots=True)
class Sample:
    """Count, mean and variance (divided by n - 1; undefined below two values)."""

    n: int
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference, confidence interval and p-value. None: not computable from these samples."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


def mean_interval(sample: Sample, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the interval of a mean (Student's t); None for fewer than two values, or if they do not vary."""
    found = paired_difference(sample, confidence)  # of pairs with 0
    return None if found.low is None or found.high is None else Interval(found.low, found.high)


def paired_difference(differences: Sample, confidence: float = 0.95) -> Difference:
    """Test whether the mean difference of pairs, at least one, is 0."""
    n, mean = differences.n, differences.mean
    if n < 2:
        return Difference(mean)
    error = math.sqrt(differences.variance / n)
    if not error or math.sqrt(differences.variance) <= _ROUNDING * abs(mean):
        return Difference(mean, p=2.0 ** (1 - n) if mean else 1.0)
    return _t_interval(mean, error, n - 1, confidence)


def unpaired_difference(a: Sample, b: Sample, confidence: float = 0.95) -> Difference:
    """Test whether two independent samples, neither empty, have the same mean: b - a."""
    mean = b.mean - a.mean
    if min(a.n, b.n) < 2:
        return Difference(mean)
    of_a, of_b = a.variance / a.n, b.variance / b.n
    spread = math.sqrt(max(a.variance, b.variance))
    if not of_a + of_b or spread <= _ROUNDING * max(abs(a.mean), abs(b.mean)):
        return Difference(mean, p=_separation_p(a.n, b.n) if mean else 1.0)
    share = of_a / (of_a + of_b)
    freedom = 1 / (share**2 / (a.n - 1) + (1 - share) ** 2 / (b.n - 1))
    return _t_interval(mean, math.sqrt(of_a + of_b), freedom, confidence)


def _t_interval(mean: float, error: float, freedom: float, confidence: float) -> Difference:
    from scipy.special import stdtr, stdtrit

    if not math.isfinite(mean + error):  # values near the limits of a double
        return Difference(mean if math.isfinite(mean) else None)
    half_width = error * float(stdtrit(freedom, (1 + confidence) / 2))
    return Difference(mean, mean - half_width, mean + half_width, 2 * float(stdtr(freedom, -abs(mean) / error)))


def _separation_p(n_a: int, n_b: int) -> float:
    ways = math.lgamma(n_a + n_b + 1) - math.lgamma(n_a + 1) - math.lgamma(n_b + 1)
    return min(1.0, 2 * math.exp(-ways))
