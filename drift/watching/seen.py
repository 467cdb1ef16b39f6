"""What a look saw of a batch, and what of it is to be told: one alarm a series, in the metric's own unit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drift.detectors import watching
from drift.detectors.baseline import Baseline
from drift.detectors.series import Floats
from drift.rules.series import Series
from drift.watching.batch import Batch


class Alarm(NamedTuple):
    """A series in alarm: its place in the batch, channel, direction (1 up, -1 down), since when (seconds since 1970).

    `expected` and `observed` are means over the `records` since then, of scores within 0..1; `log_e`: natural.
    """

    place: int
    series: Series
    channel: int
    direction: int
    onset: int
    records: int
    expected: float
    observed: float
    log_e: float


@dataclass(frozen=True, slots=True)
class Seen:
    """A batch at the end of a look, and the baselines that judge it then."""

    batch: Batch
    baseline: Baseline

    @property
    def log_e(self) -> Floats:
        """The evidence of each series [S]."""
        return watching.read(self.baseline, self.batch.rows.state).evidence

    def alarms(self) -> Iterator[Alarm]:
        """Those that are on."""
        state = self.batch.rows.state
        reading = watching.read(self.baseline, state)
        for place in np.flatnonzero(reading.alarm):
            yield Alarm(
                place=int(place),
                series=self.batch.series[place],
                channel=int(reading.channel[place]),
                direction=int(reading.direction[place]),
                onset=int(reading.onset[place]),
                records=round(float(state.alarms.records[place])),
                expected=float(reading.expected[place]),
                observed=float(reading.observed[place]),
                log_e=float(reading.evidence[place]),
            )
