"""A fleet is told what is enough for all its series, of a change as if it came alone, and is counted as a whole."""

import numpy as np
import pytest

from benchmarks.drift.bench import Bench
from benchmarks.drift.clock import HISTORY, WATCHED, WINDOWS
from benchmarks.drift.ours import FLEET, OURS, Said, alone, together
from benchmarks.drift.report import of_fleet
from benchmarks.drift.scoring import Judged
from benchmarks.drift.series import Label
from benchmarks.drift.shapes import Calm

SERIES = 4
ENOUGH = float(np.log(7 * 288 * SERIES))  # for the one with the most evidence
ON = slice(100, 130)


def said(index: int, log_e: float, changed_at: int | None = None) -> Said:
    """In alarm for 30 windows, with that evidence in the first ten of them."""
    at = WINDOWS if changed_at is None else HISTORY + changed_at
    label = Label(index, "rate", "rate", "clean", None if changed_at is None else "1 to 3 %", at, WINDOWS)
    alarm, evidence = np.zeros(WATCHED, bool), np.zeros(WATCHED, np.float32)
    alarm[ON], evidence[ON] = True, 1.0
    evidence[ON][:10] = log_e
    return Said(label, alarm, evidence)


def test_an_alarm_is_told_once_all_series_together_allow_it_and_until_it_is_over() -> None:
    found = [said(0, ENOUGH + 0.01), *(said(index, ENOUGH - 0.01) for index in range(1, SERIES))]
    assert [one.windows_in_alarm for one in alone(found[:1] + found[2:])] == [30] * 3
    assert [one.windows_in_alarm for one in together(found)] == [30] * SERIES  # by four a quarter is asked of each
    only = [found[0], *(said(index, 2.0) for index in range(1, SERIES))]
    assert [one.windows_in_alarm for one in together(only)] == [30, 0, 0, 0]
    assert [one.windows_in_alarm for one in together([said(0, ENOUGH - 0.01), *only[1:]])] == [0] * SERIES


def test_changes_at_once_do_not_help_each_other() -> None:
    """Nor do they help what is false."""
    changed = [said(index, ENOUGH - 0.01, changed_at=90) for index in range(SERIES - 1)]
    assert [one.delay_min for one in alone(changed)] == [55] * 3
    assert [one.delay_min for one in together([*changed, said(3, 2.0)])] == [None] * SERIES
    clear = [said(index, ENOUGH + 0.01, changed_at=90) for index in range(SERIES - 1)]
    assert [one.delay_min for one in together([*clear, said(3, 2.0)])] == [55, 55, 55, None]
    assert together([*clear, said(3, ENOUGH - 0.01)])[-1].false_episodes == 0


def test_a_fleet_is_counted_as_a_whole() -> None:
    half = Label(1, "rate", "rate", "clean", "1 to 3 %", HISTORY + WATCHED // 2, WINDOWS)
    judged = [Judged(half, WATCHED // 2, 1, 5, None), Judged(half, WATCHED // 2, 0, 0, None)]
    assert of_fleet(judged) == f"{FLEET}: 1 false in 3.5 days of 2 series; at most 0.5 expected"


def test_nothing_changes_in_a_calm_fleet() -> None:
    labels = [Calm().label(3, index) for index in range(20)]
    assert {(one.change, one.at) for one in labels} == {(None, WINDOWS)}


@pytest.mark.parametrize("detectors", [(OURS,), (FLEET,)])
def test_ours_says_more_where_the_fleet_is_asked_for(detectors: tuple[str, ...]) -> None:
    bench = Bench("calm", 1, 2, detectors, 0)
    [first, *_] = bench.parts()
    part = bench.run(first[:1])
    assert set(part.results) == {OURS} & set(detectors)
    assert len(part.said) == (FLEET in detectors)
