"""What a look saw of a batch, and what of it is to be told: one alarm a series, in the metric's own unit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from drift.detectors import stored, watching
from drift.detectors.baseline import Baseline
from drift.detectors.series import Floats, Integers
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

    def copy(self, places: Integers) -> "Seen":
        """Some of its series as they are now, whatever becomes of them."""
        batch, rows = self.batch, stored.take(self.batch.rows, places)
        series, labels = [batch.series[at] for at in places], [batch.labels[at] for at in places]
        named = Batch(batch.key, series, labels, [], rows, batch.until, batch.position, list(batch.successions))
        return Seen(named, stored.take(self.baseline, places))

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
