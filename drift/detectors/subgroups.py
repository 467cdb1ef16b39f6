"""Updates: consecutive windows of a channel joined until they hold enough records to speak.

The running detector and the fit of its noise join them alike. Shapes: R channels of all series, T windows, U updates,
as many as the channel with the most has; the others are zero behind their own.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.detectors.arrays import Flags, Floats, Integers, ratio


@dataclass(frozen=True, slots=True)
class Updates:
    """Of each update [R, U]: whether it is there, its records N and their sum, 1/N and Q/N^2. Q is the sum of the
    squared records of its windows: Q/N^2 is 1 for an update of one window, less for one of many. 0 where none is.
    `window`: which one completes it.
    """

    present: Flags
    records: Floats
    total: Floats
    share: Floats
    repeat_share: Floats
    window: Integers

    @property
    def count(self) -> Integers:
        """Updates of each channel [R]."""
        found: Integers = self.present.sum(axis=1)
        return found

    def at_windows(self, values: Floats, windows: int) -> Floats:
        """What is of updates [R, U], at the windows [R, T] that complete them; 0 at all others."""
        found = np.zeros((len(values), windows))
        row, update = np.nonzero(self.present)
        found[row, self.window[row, update]] = values[row, update]
        return found


def pool_windows(n: Floats, total: Floats, least: Floats) -> Updates:
    """Windows [R, T] joined until each update has `least` [R] records; what is left over waits."""
    complete = _completes(n, least)
    place = np.cumsum(complete, axis=1) - 1
    channel, window = np.nonzero(complete)
    update = place[channel, window]
    shape = (len(n), max(int(complete.sum(axis=1).max(initial=0)), 1))

    def held(values: Floats) -> Floats:
        up_to = np.cumsum(values, axis=1)[channel, window]
        found = np.zeros(shape)
        found[channel, update] = up_to - np.where(update > 0, np.roll(up_to, 1), 0.0)
        return found

    records = held(n)
    present = records > 0
    share = ratio(present, records)
    at = np.zeros(shape, np.int64)
    at[channel, update] = window
    return Updates(present, records, held(total), share, held(n**2) * share**2, at)


def _completes(n: Floats, least: Floats) -> Flags:
    """Which windows [R, T] complete an update."""
    complete = np.zeros(n.shape[::-1], dtype=bool)
    held = np.zeros(len(n))
    for window, records in enumerate(np.ascontiguousarray(n.T)):
        held += records
        complete[window] = held >= least
        held[complete[window]] = 0.0
    return complete.T
