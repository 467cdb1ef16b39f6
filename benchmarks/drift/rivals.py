"""What others use: each says of a series in which watched windows it is in alarm, or that it does not apply to it.

Their references are the 14 known-good days. Evidently's default tests are written anew from what its documentation and
release notes say of them (chosen by type, size of the reference and number of distinct values), since the package
brings 29 others along; its KS test with the asymptotic critical value. ADWIN and Page-Hinkley are River's, fed with
every record of the last two known-good days and of the watched ones.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from river.drift import ADWIN, PageHinkley
from scipy.special import kolmogi
from scipy.stats import chi2, norm

from benchmarks.drift.clock import HISTORY, PER_DAY
from benchmarks.drift.series import Series
from ragtide.drift.array_types import Flags, Floats, Integers, Numbers

Rival = Callable[[Series], Flags | None]
LEVEL = 0.05  # of the tests
EVIDENTLY_SMALL = 1_000  # rows of a reference up to which Evidently tests, beyond which it measures distances
EVIDENTLY_LARGE = 50_000
DISTANCE = 0.1  # Evidently's threshold of Wasserstein and Jensen-Shannon distances
FEW = 5  # distinct values up to which Evidently takes numbers for categories
MARGINS = {"score": 0.03, "rate": 0.005, "latency": 0.15}  # of a fixed threshold; of latency, as a share of the mean


def fixed_threshold(series: Series) -> Flags | None:
    """A line that somebody drew a little on the bad side of the mean seen so far."""
    if series.label.kind == "category":
        return None
    usual = float(series.measured[: series.ends[HISTORY]].mean())
    margin = MARGINS[series.label.kind] * (usual if series.label.kind == "latency" else 1)
    means = series.means[HISTORY:]
    return means < usual - margin if series.label.kind == "score" else means > usual + margin


def three_sigma(series: Series) -> Flags | None:
    """A window's mean is 3 standard deviations of window means away."""
    z = standardised(series)
    return None if z is None else np.abs(z) > 3


def z_test(series: Series) -> Flags | None:
    """A window's mean against the known mean and standard deviation of records, p < 0.05."""
    if series.label.kind == "category":
        return None
    known = series.measured[: series.ends[HISTORY]]
    error = max(float(known.std(dtype=np.float64)), 1e-9) / np.sqrt(np.maximum(series.n[HISTORY:], 1))
    z = (series.means[HISTORY:] - known.mean(dtype=np.float64)) / error
    alarm: Flags = np.abs(z) > norm.isf(LEVEL / 2)
    return alarm


def cusum(series: Series) -> Flags | None:
    """Page's two-sided CUSUM on standardised window means, allowance 0.5, limit 5, begun again after an alarm."""
    z = standardised(series)
    if z is None:
        return None
    alarm, up, down = np.zeros(len(z), bool), 0.0, 0.0
    for at, value in enumerate(np.nan_to_num(z).tolist()):
        up, down = max(0.0, up + value - 0.5), max(0.0, down - value - 0.5)
        if up > 5 or down > 5:
            alarm[at], up, down = True, 0.0, 0.0
    return alarm


def standardised(series: Series) -> Floats | None:
    """Watched window means by mean and standard deviation of the known-good ones; NaN for windows without records."""
    if series.label.kind == "category":
        return None
    known = series.means[:HISTORY]
    z: Floats = (series.means[HISTORY:] - np.nanmean(known)) / max(float(np.nanstd(known)), 1e-9)
    return z


def psi(series: Series) -> Flags | None:
    """Population stability index above 0.2: deciles, single values or labels; empty shares taken as 1e-4."""
    reference, windows = by_value(series)
    if windows.shape[1] > 10:
        deciles = np.searchsorted(np.cumsum(reference) / reference.sum(), np.arange(1, 10) / 10)
        starts = np.unique(np.concatenate([[0], deciles + 1]))
        starts = starts[starts < len(reference)]
        reference, windows = np.add.reduceat(reference, starts), np.add.reduceat(windows, starts, axis=1)
    expected, observed = np.maximum(shares(reference), 1e-4), np.maximum(shares(windows), 1e-4)
    index = ((observed - expected) * np.log(observed / expected)).sum(axis=1)
    alarm: Flags = (index > 0.2) & (windows.sum(axis=1) > 0)
    return alarm


def ks_test(series: Series) -> Flags | None:
    """Kolmogorov-Smirnov against all known-good records, p < 0.05; not for rates and categories."""
    if series.label.kind in ("rate", "category"):
        return None
    return kolmogorov(series.values[: series.ends[HISTORY]], series)


def evidently(rows: int, series: Series) -> Flags | None:
    """Evidently's default test with a reference of so many rows, drawn at random from the known-good days."""
    rng = np.random.default_rng([series.label.index, rows])
    counts, windows = by_value(series)
    drawn = min(rows, int(counts.sum()))
    if series.label.kind in ("score", "latency") and np.count_nonzero(counts) > FEW:
        sample = rng.choice(series.values[: series.ends[HISTORY]], drawn, replace=False)
        return kolmogorov(sample, series) if rows <= EVIDENTLY_SMALL else wasserstein(sample, series)
    reference = rng.multivariate_hypergeometric(counts, drawn) if drawn else counts
    if rows > EVIDENTLY_SMALL:
        return jensen_shannon(reference, windows) >= DISTANCE
    return proportions(reference, windows) if len(reference) <= 2 else chi_square(reference, windows)


def kolmogorov(sample: Numbers, series: Series) -> Flags:
    """Two-sample KS of each watched window against the sample, at the asymptotic critical value."""
    n = series.n[HISTORY:]
    effective = np.maximum(n * len(sample) / (n + len(sample)), 1e-9)
    alarm: Flags = (largest_gaps(sample, series) > kolmogi(LEVEL) / np.sqrt(effective)) & (n > 0)
    return alarm


def largest_gaps(sample: Numbers, series: Series) -> Floats:
    """The KS statistic of each watched window; exact for samples of up to 1,000 values."""
    _, known, up_to, below = distributions(sample, series)
    before = np.concatenate([[0.0], known[:-1]])
    gaps: Floats = np.maximum(np.abs(up_to - known).max(axis=1), np.abs(below - before).max(axis=1))
    return gaps


def wasserstein(sample: Numbers, series: Series) -> Flags:
    """First Wasserstein distance of at least a tenth of the sample's standard deviation."""
    spread = np.exp(sample).std() if series.label.kind == "latency" else sample.std()
    alarm: Flags = (distances(sample, series) >= DISTANCE * max(float(spread), 0.001)) & (series.n[HISTORY:] > 0)
    return alarm


def distances(sample: Numbers, series: Series) -> Floats:
    """First Wasserstein distances of watched windows, in the metric's unit, within a few percent.

    Distributions are compared at the sample's values; beyond its ends nothing counts.
    """
    points, known, up_to, _ = distributions(sample, series)
    widths = np.diff(np.exp(points) if series.label.kind == "latency" else points)
    distance: Floats = (np.abs(up_to - known)[:, :-1] * widths).sum(axis=1)
    return distance


def distributions(sample: Numbers, series: Series) -> tuple[Floats, Floats, Floats, Floats]:
    """At up to 1,000 values of the sample: they, its distribution, and each watched window's, with and without ties."""
    ordered = np.sort(sample)
    points = np.unique(ordered[np.linspace(0, len(ordered) - 1, min(len(ordered), 1_000)).astype(np.int64)])
    known = np.searchsorted(ordered, points, side="right") / len(ordered)
    watched = series.values[series.ends[HISTORY] :]
    up_to = cumulated(np.searchsorted(points, watched, side="left"), len(points), series)
    below = cumulated(np.searchsorted(points, watched, side="right"), len(points), series)
    return points, known, up_to, below


def cumulated(place: Integers, points: int, series: Series) -> Floats:
    """Of each watched window, the share of records whose place is at most 0, 1, ... [W, points]."""
    counts = counted(place, points + 1, series.n[HISTORY:])
    share: Floats = counts.cumsum(axis=1)[:, :-1] / np.maximum(series.n[HISTORY:], 1)[:, None]
    return share


def by_value(series: Series) -> tuple[Integers, Integers]:
    """Known-good counts [B] and those of watched windows [W, B]: of labels, failures, or hundredths of the records."""
    if series.label.kind == "category":
        return series.counts[:HISTORY].sum(axis=0), series.counts[HISTORY:]
    known, watched = series.values[: series.ends[HISTORY]], series.values[series.ends[HISTORY] :]
    failures = series.label.kind == "rate"
    edges = np.array([0.5]) if failures else np.unique(np.quantile(known, np.arange(1, 100) / 100))
    windows = counted(np.searchsorted(edges, watched, side="right"), len(edges) + 1, series.n[HISTORY:])
    reference = np.bincount(np.searchsorted(edges, known, side="right"), minlength=len(edges) + 1)
    return reference, windows


def counted(place: Integers, places: int, n: Integers) -> Integers:
    """How many records of each window lie at each place."""
    window = np.repeat(np.arange(len(n)), n)
    return np.bincount(window * places + place, minlength=len(n) * places).reshape(len(n), places)


def chi_square(reference: Integers, windows: Integers) -> Flags:
    """Pearson's test of each window against the reference's shares, p < 0.05."""
    n = windows.sum(axis=1)
    expected = np.maximum(shares(reference) * n[:, None], 1e-9)
    statistic = ((windows - expected) ** 2 / expected).sum(axis=1)
    alarm: Flags = (statistic > chi2.isf(LEVEL, len(reference) - 1)) & (n > 0)
    return alarm


def proportions(reference: Integers, windows: Integers) -> Flags:
    """The z test of two proportions with the pooled variance, p < 0.05."""
    n = windows.sum(axis=1)
    size = int(reference.sum())
    pooled = (windows[:, 1] + reference[1]) / (n + size)
    error = np.sqrt(np.maximum(pooled * (1 - pooled) * (1 / np.maximum(n, 1) + 1 / size), 1e-18))
    z = (windows[:, 1] / np.maximum(n, 1) - reference[1] / size) / error
    alarm: Flags = (np.abs(z) > norm.isf(LEVEL / 2)) & (n > 0)
    return alarm


def jensen_shannon(reference: Integers, windows: Integers) -> Floats:
    """The square root of the divergence in nats of each window from the reference; 0 for windows without records."""
    p, q = shares(reference), shares(windows)
    middle = (p + q) / 2
    divergence = (_relative(p, middle) + _relative(q, middle)).sum(axis=1) / 2
    distance: Floats = np.sqrt(np.maximum(divergence, 0))
    return np.where(windows.sum(axis=1) > 0, distance, 0)


def _relative(p: Floats, q: Floats) -> Floats:
    ratio = np.divide(p, q, out=np.ones_like(q), where=(q > 0) & (p > 0))
    terms: Floats = p * np.log(ratio)
    return terms


def shares(counts: Integers) -> Floats:
    """Counts along the last axis as shares."""
    share: Floats = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    return share


def by_record(make: Callable[[], ADWIN | PageHinkley], series: Series) -> Flags | None:
    """A detector of River's that reads records: in alarm in windows during which it says so."""
    if series.label.kind == "category":
        return None
    first = HISTORY - 2 * PER_DAY
    values = series.measured[series.ends[first] :].tolist()
    windows = np.repeat(np.arange(first, len(series.n)), series.n[first:])
    detector, alarm = make(), np.zeros(len(series.n), bool)
    for window, value in zip(windows.tolist(), values, strict=True):
        detector.update(value)
        if detector.drift_detected:
            alarm[window] = True
    return alarm[HISTORY:]


RIVALS: dict[str, Rival] = {
    "fixed": fixed_threshold,
    "3sigma": three_sigma,
    "z": z_test,
    "cusum": cusum,
    "psi": psi,
    "ks": ks_test,
    "evidently": partial(evidently, EVIDENTLY_SMALL),
    "evidently-large": partial(evidently, EVIDENTLY_LARGE),
    "adwin": partial(by_record, ADWIN),
    "page-hinkley": partial(by_record, PageHinkley),
}
