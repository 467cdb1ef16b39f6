"""Test whether a day's questions differ from the reference by more than its days differ from each other. Pure.

Both samples have the same mix of hours, so the rhythm of a day is no difference. Each day of the reference is compared
with the others of its kind (weekday, weekend) in the same way. The prediction interval of a new day follows from
t = (AUC - mean) / (s sqrt(1 + 1 / days)) with days - 1 degrees of freedom.
"""

import math
from dataclasses import dataclass

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors import FALSE_ALARMS_A_DAY
from ragtide.drift.input_drift.classifier_test import ClassifierTest, classifier_test
from ragtide.drift.input_drift.source import QuestionSample, concatenate
from ragtide.drift.stats import HOUR_S, HOURS, is_weekend

MARGIN = 0.02  # tolerance of the AUC, beyond 0.5
MIN_DAYS = 4
_MIN_SPREAD = 2e-3  # of the AUC, if all days are alike
_STAY_ALPHA = 0.05
_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class DayComparison:
    """Two samples with the same mix of hours, if possible, and their test; None: too few questions."""

    new: QuestionSample
    old: QuestionSample
    test: ClassifierTest | None

    def most_unusual(self, most: int) -> tuple[str, ...]:
        """Return trace ids of the new questions least like the old ones, without repetitions."""
        if self.test is None:
            return ()
        found: dict[bytes, str] = {}
        for place in np.argsort(-np.nan_to_num(self.test.log_odds, nan=-np.inf), kind="stable"):
            found.setdefault(self.new.vectors[place].tobytes(), self.new.trace_ids[place])
        return tuple(found.values())[:most]


def compare(new: QuestionSample, old: QuestionSample, by_hour: bool) -> DayComparison:
    """Compare equally many new and old questions."""
    of_new, of_old = _match_hours(new.at, old.at, by_hour)
    new, old = new.select(of_new), old.select(of_old)
    return DayComparison(new, old, classifier_test(new.vectors, old.vectors, _SEED))


def usual_aucs(days: list[QuestionSample], starts: Integers, by_hour: bool) -> Floats:
    """Return the AUC of each day [D] against the others of its kind; NaN: too few questions."""
    found = np.full(len(days), np.nan)
    for place, one in enumerate(days):
        others = [days[other] for other in np.flatnonzero(same_day_kind(starts, int(starts[place]))) if other != place]
        test = compare(one, concatenate(others), by_hour).test if others else None
        found[place] = np.nan if test is None else test.auc
    return found


def same_day_kind(starts: Integers, day: int) -> Flags:
    """Tell which days are of the same kind as `day`, weekday or weekend; all in seconds since 1970."""
    return np.asarray(is_weekend(starts) == is_weekend(day))


def is_drifted(test: ClassifierTest | None, usual: Floats, margin: float, already: bool = False) -> bool | None:
    """Tell whether a day differs by more than `margin` and more than similar days do, significantly; None: unknown.

    If the day before differed `already`, the level is 5 %: few days of a kind have little power, and would clear a
    problem that is not over.
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
    """Sample equally many of both from each hour of the day; return their indices."""
    rng = np.random.default_rng(_SEED)
    of_new, of_old = (at // HOUR_S % HOURS if by_hour else np.zeros_like(at) for at in (new, old))
    places = []
    for hour in range(HOURS):
        both = np.flatnonzero(of_new == hour), np.flatnonzero(of_old == hour)
        most = min(map(len, both))
        places.append([rng.permutation(some)[:most] for some in both])
    mine, others = (np.sort(np.concatenate(parts)) for parts in zip(*places, strict=True))
    return mine, others
