"""Rivals decide as scipy's tests, River's detectors and arithmetic do."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from river.drift import ADWIN, PageHinkley
from scipy import stats
from scipy.spatial import distance

from benchmarks.drift import rivals
from benchmarks.drift.clock import HISTORY, PER_DAY, WINDOWS
from benchmarks.drift.rivals import RIVALS
from benchmarks.drift.series import MISSING, Label, Series

SCORE = Label(0, "score", "smooth", "clean", None, WINDOWS, WINDOWS)
N = np.where(np.arange(WINDOWS) % 50 == 7, 0, 20)  # some windows have no records


def of_values(values: npt.NDArray[np.float32], kind: str = "score") -> Series:
    label = {"score": SCORE, "rate": Label(0, "rate", "", "", None, WINDOWS, WINDOWS)}[kind]
    return Series(label, N, values.astype(np.float32), np.empty((WINDOWS, 0), np.int64))


def of_labels(counts: npt.NDArray[np.int64]) -> Series:
    label = Label(0, "category", "", "", None, WINDOWS, WINDOWS)
    return Series(label, counts.sum(axis=1), MISSING, counts)


@pytest.fixture(scope="module")
def scores() -> Series:
    """Beta scores whose mean falls in the last two days."""
    values = np.random.default_rng(1).beta(8, 2, N.sum())
    values[N[: -2 * PER_DAY].sum() :] -= 0.2
    return of_values(np.clip(values, 0, 1))


def alarms(name: str, series: Series) -> list[int]:
    """Watched windows in which the rival is in alarm."""
    alarm = RIVALS[name](series)
    assert alarm is not None
    found: list[int] = np.flatnonzero(alarm).tolist()
    return found


def watched(series: Series) -> list[npt.NDArray[np.float32]]:
    return [series.values[first:end] for first, end in pairwise(series.ends[HISTORY:].tolist())]


def test_ks_is_the_statistic_of_scipy(scores: Series) -> None:
    for sample in (scores.values[:800], np.round(scores.values[:800], 1)):
        series = of_values(np.round(scores.values, 1)) if len(np.unique(sample)) < 20 else scores
        found = rivals.largest_gaps(sample, series)
        for window in range(0, 2_016, 97):
            if len(watched(series)[window]):
                expected = stats.ks_2samp(sample, watched(series)[window]).statistic
                assert found[window] == pytest.approx(expected, abs=1e-6)


def test_ks_alarms_agree_with_scipys_p_values_but_at_the_limit(scores: Series) -> None:
    sample = scores.values[:800]
    alarm = rivals.kolmogorov(sample, scores)
    p = np.array([stats.ks_2samp(sample, one).pvalue if len(one) else 1 for one in watched(scores)[::20]])
    clear = (p < 0.03) | (p > 0.07)
    assert clear.sum() > 80
    assert (alarm[::20] == (p < 0.05))[clear].all()


def test_wasserstein_is_the_distance_of_scipy_within_the_samples_ends(scores: Series) -> None:
    sample = scores.values[:800]
    found = rivals.distances(sample, scores)
    for window in range(0, 2_016, 97):
        if len(one := watched(scores)[window]):
            expected = stats.wasserstein_distance(sample, np.clip(one, sample.min(), sample.max()))
            assert found[window] == pytest.approx(expected, rel=0.03)


def test_chi_square_and_jensen_shannon_are_scipys() -> None:
    rng = np.random.default_rng(1)
    reference, windows = rng.multinomial(900, [0.5, 0.3, 0.2]), rng.multinomial(60, [0.45, 0.35, 0.2], 300)
    p = np.array([stats.chisquare(one, reference / 900 * 60).pvalue for one in windows])
    assert rivals.chi_square(reference, windows).tolist() == (p < 0.05).tolist()
    assert 0.02 < (p < 0.05).mean() < 0.5
    expected = [distance.jensenshannon(reference, one) for one in windows]
    assert rivals.jensen_shannon(reference, windows) == pytest.approx(expected)


def test_proportions_by_hand() -> None:
    # 10 of 1,000 against 3 of 60: pooled 13 / 1,060 = 0.01226, error sqrt(0.01211 (1/60 + 1/1,000)) = 0.01463,
    # z = 0.04 / 0.01463 = 2.73; 2 of 60: pooled 0.01132, error 0.01406, z = 1.66.
    windows = np.array([[57, 3], [58, 2], [0, 0]])
    assert rivals.proportions(np.array([990, 10]), windows).tolist() == [True, False, False]


def test_psi_by_hand() -> None:
    # Half and half becoming 72 : 28 is 0.44 ln(72 / 28) / 2 = 0.2078, 71 : 29 is 0.42 ln(71 / 29) / 2 = 0.1880.
    counts = np.tile([50, 50], (WINDOWS, 1))
    counts[HISTORY + 3], counts[HISTORY + 4], counts[HISTORY + 5] = (72, 28), (71, 29), (0, 0)
    assert alarms("psi", of_labels(counts)) == [3]


def steps(*levels: float) -> Series:
    """Known-good windows of means 0.4 and 0.6 in turn, so 0.5 on average and 0.1 off it; then these, and 0.5."""
    means = np.where(np.arange(WINDOWS) % 2, 0.4, 0.6)
    means[HISTORY:] = 0.5
    means[HISTORY : HISTORY + len(levels)] = levels
    n = np.full(WINDOWS, 10)
    return Series(SCORE, n, np.repeat(means, n).astype(np.float32), np.empty((WINDOWS, 0), np.int64))


def test_three_sigma_fixed_threshold_and_z_by_hand() -> None:
    series = steps(0.19, 0.21, 0.79, 0.81, 0.46, 0.48)
    assert alarms("3sigma", series) == [0, 3]
    assert alarms("fixed", series) == [0, 1, 4]
    assert alarms("z", series) == [0, 1, 2, 3]  # 1.96 x 0.1 / sqrt(10) = 0.062


def test_cusum_by_hand() -> None:
    # Standardised 2 adds 1.5 a window: 1.5, 3, 4.5, 6 > 5, and from 0 again; -1 adds nothing but 0.5 downwards.
    assert alarms("cusum", steps(*[0.7] * 9, *[0.4] * 12)) == [3, 7, 19]


@pytest.mark.parametrize(("name", "make"), [("adwin", ADWIN), ("page-hinkley", PageHinkley)])
def test_detectors_of_records_alarm_where_river_does(
    scores: Series, name: str, make: type[ADWIN | PageHinkley]
) -> None:
    detector, expected = make(), set()
    windows = np.repeat(np.arange(WINDOWS), N)
    for window, value in zip(windows.tolist(), scores.values.tolist(), strict=True):
        if window >= HISTORY - 2 * PER_DAY:
            detector.update(value)
            if detector.drift_detected:
                expected.add(window - HISTORY)
    alarm = alarms(name, scores)
    assert alarm == sorted(window for window in expected if window >= 0)
    fall = WINDOWS - HISTORY - 2 * PER_DAY
    assert any(fall <= window < fall + 20 for window in alarm)


def test_evidently_chooses_its_test_by_kind_and_size_of_the_reference(scores: Series) -> None:
    falls = np.arange(HISTORY, WINDOWS) >= WINDOWS - 2 * PER_DAY
    with_records = N[HISTORY:] > 0
    small, large = RIVALS["evidently"](scores), RIVALS["evidently-large"](scores)
    assert small is not None
    assert large is not None
    assert small[falls & with_records].all()
    assert large[falls & with_records].all()
    assert 0.01 < small[~falls & with_records].mean() < 0.1  # a test of level 0.05
    assert large[~falls & with_records].mean() > 0.5  # 20 records are further than 0.1 from any reference
    assert not (small | large)[~with_records].any()
    failures = of_values((np.arange(N.sum()) % 10 == 0).astype(np.float32), "rate")
    assert not np.any(RIVALS["evidently"](failures))  # exactly 2 of each 20


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_takes_every_kind_or_says_that_it_does_not(name: str, scores: Series) -> None:
    labels = of_labels(np.tile([8, 2, 0], (WINDOWS, 1)))
    constant = of_values(np.ones(N.sum(), np.float32))
    for series in (labels, constant):
        alarm = RIVALS[name](series)
        assert alarm is None or (alarm.shape == (WINDOWS - HISTORY,) and not alarm.any())
    assert (RIVALS[name](labels) is None) == (name not in ("psi", "evidently", "evidently-large"))
