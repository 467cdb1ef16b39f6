"""Alarms made by hand are judged as the rules of scoring say, and goals are met or missed by the figures."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.drift.clock import HISTORY, WATCHED, WINDOWS
from benchmarks.drift.report import DELAYS_MIN, by_shape, tables, too_many, unfound, unmet
from benchmarks.drift.scoring import Judged, judged, summary
from benchmarks.drift.series import Label

CHANGED = Label(1, "score", "smooth", "clean", "-0.10", HISTORY + 1_000, WINDOWS)
WELL = replace(CHANGED, index=0, change=None, at=WINDOWS)


def alarm(*windows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    on = np.zeros(WATCHED, bool)
    on[list(windows)] = True
    return on


@pytest.mark.parametrize(
    ("windows", "false", "in_alarm", "delay_min"),
    [
        ((), 0, 0, None),
        ((1_000,), 0, 0, 5),  # at the end of the first window that has changed
        ((1_001, 1_002, 1_003), 0, 0, 10),
        ((0, 999), 2, 2, None),
        ((100, 101, 112), 1, 3, None),  # 11 quiet windows do not end an episode
        ((100, 113), 2, 2, None),  # 12 do
        ((990, 1_001), 1, 1, None),  # still the false one
        ((990, 1_001, 1_015), 1, 1, 80),
        ((988, 1_000), 1, 1, None),
        ((987, 1_000), 1, 1, 5),
    ],
)
def test_episodes(windows: tuple[int, ...], false: int, in_alarm: int, delay_min: float | None) -> None:
    assert judged(CHANGED, alarm(*windows)) == Judged(CHANGED, 1_000, false, in_alarm, delay_min)


def test_what_passes_is_found_only_in_time() -> None:
    spike = replace(CHANGED, until=CHANGED.at + 12)
    assert judged(spike, alarm(1_011)).delay_min == 60
    assert judged(spike, alarm(1_012)).delay_min is None


def test_all_watched_windows_of_a_series_that_never_changes_are_null() -> None:
    assert judged(WELL, alarm(5, 1_500)) == Judged(WELL, WATCHED, 2, 2, None)


def test_a_summary_divides_by_the_null_time_and_counts_what_was_not_found_as_never() -> None:
    found = [Judged(CHANGED, 1_008, 0, 0, delay) for delay in (5, 10, None)]
    whole = summary([Judged(WELL, 2_016, 3, 21, None), *found])
    assert whole.false_per_day == pytest.approx(3 / 17.5)  # 7 days and three times 3.5
    assert whole.null_in_alarm == 21 / 5_040
    assert whole.found == pytest.approx(2 / 3)
    assert whole.delay_min == 10
    assert summary(found[1:] + found[2:]).delay_min == math.inf
    assert math.isnan(summary([Judged(WELL, 2_016, 0, 0, None)]).found)


def reached() -> list[Judged]:
    """One dense series of each change, found as late as the goals allow, and one that never changes."""
    changed = [Judged(replace(CHANGED, change=name), 1_008, 0, 0, delay) for name, delay in DELAYS_MIN.items()]
    return [Judged(WELL, 2_016, 0, 0, None), *changed]


def test_goals_are_met_at_the_figures_of_the_goals() -> None:
    assert unmet(reached()) == []


def test_each_goal_can_be_missed() -> None:
    late = [replace(one, delay_min=one.delay_min and one.delay_min + 5) for one in reached()]
    assert len(unmet(late)) == len(DELAYS_MIN)
    [step] = unmet([*reached(), *(Judged(CHANGED, 1_008, 0, 0, delay) for delay in (5, 5, 5, None))])
    assert step == "85.7% of the steps found instead of 98%"
    [false] = too_many([replace(reached()[0], false_episodes=1)])
    assert false == "0.1429 false alarms a series-day instead of 0.005"
    assert unmet([]) != []


def test_of_each_shape_half_of_the_changes_have_to_be_found() -> None:
    calm, moved = (replace(CHANGED, shape=shape) for shape in ("calm", "moved"))
    results = [Judged(moved, 1_008, 0, 0, 5), Judged(moved, 1_008, 0, 0, None), Judged(WELL, 2_016, 0, 0, None)]
    assert unfound(results) == []
    never = [Judged(calm, 1_008, 0, 0, None)]
    assert unfound([*results, *never]) == ["0% of the changes of calm found instead of 50%"]


def test_sparse_series_are_not_in_the_goals_of_delay() -> None:
    sparse = [Judged(replace(CHANGED, regime="sparse"), 1_008, 0, 0, 1_000) for _ in range(50)]
    assert unmet(reached() + sparse) == []


def test_tables_have_a_row_a_detector_and_say_how_many_were_found() -> None:
    results = {"ours": [*reached(), Judged(CHANGED, 1_008, 0, 0, None)], "other": [Judged(WELL, 2_016, 7, 504, None)]}
    dense = "\n".join(tables(results)).split("sparse")[0]
    assert "10 (50%)" in dense
    assert "1.0000" in dense
    assert "25.00%" in dense
    shapes = "\n".join(by_shape(results))
    assert "-0.10: 10 (50%)" in shapes
