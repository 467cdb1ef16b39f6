"""Whole minutes are drawn: as many as are needed, the same again, and each as likely as any other."""

from collections import Counter

from ragtide.drift.stats.sampling import sample_minutes


def test_minutes_hold_five_times_what_is_wanted() -> None:
    counts = dict.fromkeys(range(0, 6000, 60), 10)
    found = sample_minutes(counts, 20, seed=1)
    assert len(found) == 10
    assert found == sorted(found) == sample_minutes(counts, 20, seed=1) != sample_minutes(counts, 20, seed="1 17")
    assert set(found) <= counts.keys()
    assert sample_minutes(counts, 200, seed=1) == list(counts), "all of them, where there are not many more"
    assert sample_minutes({}, 20, seed=1) == []


def test_any_minute_is_as_likely() -> None:
    counts = dict.fromkeys(range(10), 5)
    drawn = Counter(minute for seed in range(1_000) for minute in sample_minutes(counts, 5, seed))
    assert all(430 < drawn[minute] < 570 for minute in counts), "half of them each time"
