"""What alarms are worth: false ones before the change, and when the first one after it came.

An episode lasts until there was no alarm for an hour. It is false when it begins before the change. A change is found
when an episode begins after it: a detector whose alarm has not ended by then gets no credit before it begins anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.drift.clock import HISTORY, PER_DAY, WINDOW_S
from benchmarks.drift.series import Label
from ragtide.drift.array_types import Flags

QUIET = 12  # windows without alarm that end an episode


@dataclass(frozen=True)
class Judged:
    """One detector on one series: `delay_min` is from the change to the end of the window that found it."""

    label: Label
    null_windows: int
    false_episodes: int
    windows_in_alarm: int  # of the null ones
    delay_min: float | None


@dataclass(frozen=True)
class Summary:
    """One detector on many series."""

    false_per_day: float
    null_in_alarm: float  # share of the null time
    found: float  # share of the changes; NaN where there was none
    delay_min: float  # median over all changes, infinite where half of them were not found


def judged(label: Label, alarm: Flags) -> Judged:
    """The alarms [watched windows] of one detector on one series."""
    at, until = label.at - HISTORY, label.until - HISTORY
    on = np.flatnonzero(alarm)
    begins = on[np.diff(on, prepend=-QUIET - 1) > QUIET]
    found = begins[(begins >= at) & (begins < until)]
    delay_min = (int(found[0]) + 1 - at) * WINDOW_S / 60 if len(found) else None
    return Judged(label, at, int((begins < at).sum()), int(alarm[:at].sum()), delay_min)


def summary(results: Iterable[Judged]) -> Summary:
    """Rates over the null time of all, shares and delays over those that change."""
    results = list(results)
    windows = sum(one.null_windows for one in results)
    delays = [np.inf if one.delay_min is None else one.delay_min for one in results if one.label.change]
    return Summary(
        sum(one.false_episodes for one in results) * PER_DAY / windows if windows else np.nan,
        sum(one.windows_in_alarm for one in results) / windows if windows else np.nan,
        float(np.isfinite(delays).mean()) if delays else np.nan,
        float(np.quantile(delays, 0.5, method="inverted_cdf")) if delays else np.nan,
    )
