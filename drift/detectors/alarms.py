"""Alarms: opened by the evidence, resolved when what is observed has been near what is expected for a while.

Resolved: in the direction of the alarm, the mean residual of the last 12 updates is at most max(margin, half the
estimated shift), for 12 updates running. Then the series' evidence starts again. Shapes: S series, C channels.
"""

from dataclasses import dataclass, fields

import numpy as np

from drift.detectors import evidence as statistic
from drift.detectors.evidence import Evidence, Update
from drift.detectors.series import Flags, Floats, Numbers

ROLLING = 12  # updates


@dataclass(frozen=True, slots=True)
class Alarms:
    """Of each series [S]: whether it is in alarm, by which channel and direction, since which window, with what.

    Sums since the onset; the last 12 settled residuals [S, 12] with how many there were; what is not settled yet; how
    many updates running were good.
    """

    on: Flags
    channel: Numbers
    direction: Numbers
    onset: Numbers
    records: Floats
    residual: Floats
    expected: Floats
    recent: Floats
    settled: Numbers
    waiting: Floats
    waiting_residual: Floats
    good: Numbers

    @classmethod
    def none(cls, series: int) -> "Alarms":
        """Nothing is in alarm."""
        kinds: dict[str, type] = {"on": np.bool_, "channel": np.int16, "direction": np.int8, "good": np.int8}
        kinds |= {"onset": np.int32, "settled": np.int32}
        shapes = {"recent": (series, ROLLING)}
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.zeros(shapes.get(name, (series,)), kinds.get(name, np.float64)) for name in names})

    @property
    def shift(self) -> Floats:
        """The mean residual since the onset; 0 where nothing is in alarm."""
        found: Floats = np.where(self.on, self.residual / np.where(self.records > 0, self.records, 1.0), 0.0)
        return found


def follow(alarms: Alarms, update: Update, margin: Floats, settle: Floats) -> Flags:
    """What an update does to alarms that are on, in place; series [S] whose alarm it resolved.

    `margin` [S, C] in the unit of residuals; a residual is settled once it is of `settle` [S, C] records.
    """
    on = np.flatnonzero(alarms.on)
    on = on[update.there[on, alarms.channel[on]]]
    if not len(on):
        return np.zeros(len(alarms.on), dtype=bool)
    channel = alarms.channel[on]
    records, residual = update.records[on, channel], update.residual[on, channel]
    alarms.records[on] += records
    alarms.residual[on] += residual
    alarms.expected[on] += update.expected[on, channel]
    alarms.waiting[on] += records
    alarms.waiting_residual[on] += residual
    _settle(alarms, on[alarms.waiting[on] >= settle[on, channel]], margin)
    resolved = alarms.on & (alarms.good >= ROLLING)
    alarms.on[resolved] = False
    return resolved


def _settle(alarms: Alarms, series: Numbers, margin: Floats) -> None:
    mean = alarms.waiting_residual[series] / alarms.waiting[series]
    alarms.recent[series, alarms.settled[series] % ROLLING] = mean
    alarms.settled[series] += 1
    alarms.waiting[series] = alarms.waiting_residual[series] = 0.0
    direction = alarms.direction[series]
    allowed = np.maximum(margin[series, alarms.channel[series]], direction * alarms.shift[series] / 2)
    off = direction * alarms.recent[series].sum(axis=1) / ROLLING
    near = (alarms.settled[series] >= ROLLING) & (off <= allowed)
    alarms.good[series] = np.where(near, alarms.good[series] + 1, 0)


def open_new(alarms: Alarms, evidence: Evidence, log_e: Floats, threshold: float, active: Flags) -> None:
    """Alarms of series [S] whose evidence reached the threshold, in place: by the alternative that explains most."""
    series = np.flatnonzero(~alarms.on & (log_e >= threshold))
    if not len(series):
        return
    log_m = np.where(active[series, :, None, None], evidence.log_m[series], statistic.NOTHING)
    best = np.unravel_index(log_m.reshape(len(series), -1).argmax(axis=1), log_m.shape[1:])
    alarms.on[series] = True
    alarms.channel[series] = best[0]
    alarms.direction[series] = 1 - 2 * best[1]
    at = (series, *best)
    alarms.onset[series] = evidence.onset[at]
    alarms.records[series] = evidence.records[at]
    alarms.residual[series] = evidence.residual[at]
    alarms.expected[series] = evidence.expected[at]
    alarms.recent[series] = 0.0
    for counter in (alarms.settled, alarms.waiting, alarms.waiting_residual, alarms.good):
        counter[series] = 0
