"""Is a day asked otherwise than the days of a reference, by more than these differ among each other? Pure.

Both samples have the same mix of hours, so that the rhythm of a day is no difference. Each day of the reference is
compared with the others of its kind (weekday, weekend) in the same way: what a day like them may be is told by how much
they differ, t = (area - mean) / (s sqrt(1 + 1 / days)) with days - 1 degrees of freedom.
"""

import math
from dataclasses import dataclass

import numpy as np

from ragtide.drift.detectors.arrays import Flags, Floats, Integers
from ragtide.drift.detectors.baseline import FALSE_ALARMS_A_DAY
from ragtide.drift.input_drift.classifier_test import ClassifierTest, classifier_test
from ragtide.drift.input_drift.source import QuestionSample, concatenate
from ragtide.drift.stats.calendar import HOUR_S, HOURS, is_weekend

MARGIN = 0.02  # of the area, beyond a half: nobody's business
MIN_DAYS = 4
_MIN_SPREAD = 2e-3  # of an area: days that are all alike are not told apart by a rounding
_STAY_ALPHA = 0.05
_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class DayComparison:
    """Two samples of the same mix of hours, where there is one, and how far they are apart; None: too few to tell."""

    new: QuestionSample
    old: QuestionSample
    test: ClassifierTest | None

    def most_unusual(self, most: int) -> tuple[str, ...]:
        """Trace ids of new questions that look least like the old ones, each question once."""
        if self.test is None:
            return ()
        found: dict[bytes, str] = {}
        for place in np.argsort(-np.nan_to_num(self.test.log_odds, nan=-np.inf), kind="stable"):
            found.setdefault(self.new.vectors[place].tobytes(), self.new.trace_ids[place])
        return tuple(found.values())[:most]


def compare(new: QuestionSample, old: QuestionSample, by_hour: bool) -> DayComparison:
    """New questions against old ones, as many of either."""
    of_new, of_old = _match_hours(new.at, old.at, by_hour)
    new, old = new.select(of_new), old.select(of_old)
    return DayComparison(new, old, classifier_test(new.vectors, old.vectors, _SEED))


def usual_aucs(days: list[QuestionSample], starts: Integers, by_hour: bool) -> Floats:
    """The area of each day [D] against the others of its kind; NaN where that cannot be told."""
    found = np.full(len(days), np.nan)
    for place, one in enumerate(days):
        others = [days[other] for other in np.flatnonzero(same_day_kind(starts, int(starts[place]))) if other != place]
        test = compare(one, concatenate(others), by_hour).test if others else None
        found[place] = np.nan if test is None else test.auc
    return found


def same_day_kind(starts: Integers, day: int) -> Flags:
    """Days of the same kind as this one, weekday or weekend; all in seconds since 1970."""
    return np.asarray(is_weekend(starts) == is_weekend(day))


def is_drifted(test: ClassifierTest | None, usual: Floats, margin: float, already: bool = False) -> bool | None:
    """Whether a day differs, for sure by more than the `margin` and more than days like it do; None: cannot be told.

    Where the day before was unlike `already`, one in twenty is sure enough: a kind of day of which there are few tells
    less, and would end what is not over.
    """
    level = _STAY_ALPHA if already else FALSE_ALARMS_A_DAY
    from scipy.special import ndtri, stdtr

    known = usual[np.isfinite(usual)]
    if test is None or len(known) < MIN_DAYS:
        return None
    beyond = test.auc - 0.5 - margin
    if beyond < -float(ndtri(level)) * test.error:
        return False
    spread = max(float(known.std(ddof=1)), _MIN_SPREAD) * math.sqrt(1 + 1 / len(known))
    return bool(stdtr(len(known) - 1, -(test.auc - known.mean()) / spread) <= level)


def _match_hours(new: Integers, old: Integers, by_hour: bool) -> tuple[Integers, Integers]:
    """Places of as many of either from each hour of the day, by lot."""
    rng = np.random.default_rng(_SEED)
    of_new, of_old = (at // HOUR_S % HOURS if by_hour else np.zeros_like(at) for at in (new, old))
    places = []
    for hour in range(HOURS):
        both = np.flatnonzero(of_new == hour), np.flatnonzero(of_old == hour)
        most = min(map(len, both))
        places.append([rng.permutation(some)[:most] for some in both])
    mine, others = (np.sort(np.concatenate(parts)) for parts in zip(*places, strict=True))
    return mine, others
