"""What a fit says: warming up with a reason, a fixed reference, shapes that bring false alarms to others."""

import numpy as np
import pytest

from ragtide.drift.detectors import categories, proportions, run_state, scores
from ragtide.drift.detectors.arrays import Categories, HeavyTailed, Rates, Scores, cut, level_values, quantile_bins
from ragtide.drift.detectors.baseline import log_threshold
from ragtide.drift.windows.histogram import LOG_ORIGIN, Scale
from tests.drift.detectors.worlds import DAY, KINDS, MONDAY, mixed, rated, scored, timed


def test_the_stated_run_length() -> None:
    """A thousand days of 288 windows; of hours, 24,000."""
    assert np.exp(log_threshold(300)) == pytest.approx(288_000)
    assert np.exp(log_threshold(3600)) == pytest.approx(24_000)


def test_too_little_history_is_said_and_gives_no_alarm() -> None:
    batch = scored(3 * DAY, 3, 1)
    batch.n[0], batch.total[0], batch.squares[0] = 0, 0, 0
    batch.n[1, : 2 * DAY + 100] = 0
    batch.n[2, np.arange(3 * DAY) % 60 > 0] = 0
    baseline = scores.fit(cut(batch, slice(0, 2 * DAY + 200)))
    assert baseline.warm_up_reasons() == [
        "no records yet",
        "less than a day of history",
        "too few records to estimate their variance",
    ]
    later = scored(DAY, 3, 2, 0, fall=0.5)
    state = run_state.start_state(baseline)
    watched = scores.run(baseline, state, Scores(later.start + 3 * 86_400, later.n, later.total, later.squares))
    assert not watched.alarm.any()
    assert run_state.detector_status(baseline, state).evidence.max() < 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("first", "last", "unknown"), [(0, 5, "weekends"), (4.5, 7, "weekdays")])
def test_a_kind_of_day_that_was_never_seen_is_not_judged(kind: str, first: float, last: int, unknown: str) -> None:
    """All is another from Saturday on, or from Monday on: which only the next days of the known kind can tell."""
    known_again = {5: 7, 7: 12}[last]
    batch = KINDS[kind].made((known_again + 2) * DAY, 2, 12, last * DAY)
    baseline = KINDS[kind].fit(cut(batch, slice(int(first * DAY), last * DAY)))
    assert baseline.warm_up_reasons() == ["", ""]
    assert [why.split()[0] for why in baseline.days_not_judged()] == [unknown, unknown]
    state = run_state.start_state(baseline)
    first_days = KINDS[kind].run(baseline, state, cut(batch, slice(last * DAY, known_again * DAY)))
    assert not first_days.alarm.any()
    assert KINDS[kind].run(baseline, state, cut(batch, slice(known_again * DAY, None))).alarm.any(axis=1).all()


def test_a_day_of_a_kind_is_enough_to_know_it() -> None:
    """From Friday noon on: by Saturday noon neither kind was seen for a day, by Sunday both."""
    batch = rated(14 * DAY, 2, 13)
    friday = 4 * DAY + DAY // 2
    known = [
        proportions.fit_rates(cut(batch, slice(friday, last))).day_kinds_seen[0].tolist()
        for last in (friday + DAY, 6 * DAY, 14 * DAY)
    ]
    assert known == [[False, False], [False, True], [True, True]]
    batch.n[:, 5 * DAY : 7 * DAY] = 0  # nobody comes on weekends
    assert proportions.fit_rates(cut(batch, slice(0, 7 * DAY))).day_kinds_seen[0].tolist() == [True, False]


@pytest.mark.parametrize("kind", KINDS)
def test_a_fixed_reference_needs_no_season(kind: str) -> None:
    """Half a day, then its hours of other days: unchanged, and changed. Of other hours it says nothing: see `moved`."""
    reference = KINDS[kind].made(DAY // 2, 1, 3)
    baseline = KINDS[kind].fit(reference, seasonal=False)
    assert baseline.warm_up_reasons() == [""]
    assert (baseline.level == baseline.level[:, :, :1]).all()
    for changed_at, alarmed in ((None, False), (30, True)):
        later = KINDS[kind].made(DAY // 2, 1, 4, changed_at)
        assert KINDS[kind].run(baseline, run_state.start_state(baseline), later).alarm.any() == alarmed


def test_the_reading_says_what_happened() -> None:
    batch = scored(4 * DAY, 2, 5, 3 * DAY + 40, fall=0.2)
    baseline = scores.fit(cut(batch, slice(0, 3 * DAY)))
    state = run_state.start_state(baseline)
    scores.run(baseline, state, cut(batch, slice(3 * DAY, 3 * DAY + 40)))
    assert not run_state.detector_status(baseline, state).alarm.any()
    scores.run(baseline, state, cut(batch, slice(3 * DAY + 40, 3 * DAY + 100)))
    found = run_state.detector_status(baseline, state)
    assert found.alarm.all()
    assert found.channel.tolist() == [0, 0]
    assert found.direction.tolist() == [-1, -1]
    assert np.abs(found.onset - batch.start[3 * DAY + 40]).max() <= 2 * 300
    assert found.shift == pytest.approx([-0.2, -0.2], abs=0.02)
    assert found.observed == pytest.approx(found.expected + found.shift)
    assert (found.evidence > log_threshold(300)).all()


def test_a_wider_spread_is_the_channel_spread() -> None:
    batch = scored(4 * DAY, 1, 6)
    wide = batch.squares - batch.total**2 / batch.n
    squares = batch.squares + np.where(np.arange(4 * DAY) >= 3 * DAY + 40, 3 * wide, 0.0)
    batch = Scores(batch.start, batch.n, batch.total, squares)
    baseline = scores.fit(cut(batch, slice(0, 3 * DAY)))
    state = run_state.start_state(baseline)
    scores.run(baseline, state, cut(batch, slice(3 * DAY, 3 * DAY + 60)))
    found = run_state.detector_status(baseline, state)
    assert (found.alarm[0], scores.SCORE_CHANNELS[found.channel[0]], found.direction[0]) == (True, "spread", 1)
    assert found.expected[0] == pytest.approx(0.15**2, rel=0.05)
    assert found.observed[0] == pytest.approx(4 * 0.15**2, rel=0.1)


def test_the_margin_grows_with_how_little_is_known_of_the_level() -> None:
    """Two standard errors of a share of 2 %, of 4 and 1 days of about 40 records a window."""
    for days in (4, 1):
        batch = rated(days * DAY, 20, 7)
        baseline = proportions.fit_rates(batch, seasonal=False)
        error = 2 * np.sqrt(0.02 * 0.98 / batch.n.sum(axis=1))
        known = np.log(1.1) + error / (0.02 * 0.98)
        # Inflation, of which the longest horizon counts, is measured and at least 1.
        assert 1 < np.median(baseline.margin[:, 0, 0] / known) < 1.4


def test_a_label_that_nobody_had_belongs_to_the_rest() -> None:
    batch = mixed(4 * DAY, 1, 8)
    baseline = categories.fit(cut(batch, slice(0, 3 * DAY)))
    assert baseline.active[0].tolist() == [True, True, True, False, True]
    state = run_state.start_state(baseline)
    counts = batch.counts.copy()
    counts[0, 3 * DAY :, 3] += 2
    categories.run(baseline, state, cut(Categories(batch.start, counts), slice(3 * DAY, None)))
    found = run_state.detector_status(baseline, state)
    assert (found.alarm[0], found.channel[0], found.direction[0]) == (True, 4, 1)


def test_a_rest_that_is_less_than_it_is_taken_for_does_not_fall() -> None:
    batch = mixed(8 * DAY, 1, 9)
    batch.counts[:, :, 0] += batch.counts[:, :, 3]
    batch.counts[:, :, 3] = 0
    baseline = categories.fit(cut(batch, slice(0, 3 * DAY)))
    watched = categories.run(baseline, run_state.start_state(baseline), cut(batch, slice(3 * DAY, None)))
    assert not watched.alarm.any()


def test_levels_of_latency_are_its_bins() -> None:
    """100 records of 1 s, 2 s ... 100 s: the median lies in the bin of 50 s, the p95 in that of 95 s."""
    scale = Scale(0.0, np.inf, "lower")
    seconds = np.arange(1, 101)
    bins = np.array([scale.bin(float(value)) for value in seconds])
    levels = quantile_bins(np.bincount(bins - LOG_ORIGIN)[None]) + LOG_ORIGIN
    assert levels.tolist() == [[scale.bin(50.0), scale.bin(95.0)]]
    assert level_values(levels)[0] == pytest.approx([50, 95], rel=0.01)
    baseline = proportions.fit_heavy_tailed(timed(2 * DAY, 1, 1), levels)
    assert baseline.level_bins.tolist() == levels.tolist()


def test_windows_must_lie_on_a_grid() -> None:
    with pytest.raises(ValueError, match="evenly spaced"):
        Rates(np.array([0, 300, 900]), np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="do not fit 2 windows"):
        HeavyTailed(MONDAY + np.array([0, 300]), np.ones((1, 3)), np.ones((1, 3, 2)))
