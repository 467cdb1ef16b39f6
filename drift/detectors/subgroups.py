"""Pool consecutive windows of a channel to updates with enough records (rational subgroups).

The running detector and the fit of its noise pool alike. Shapes: R channels of all series, T windows, U updates of the
channel with the most; other channels are padded with zeros.
"""

from dataclasses import dataclass

import numpy as np

from ragtide.drift.detectors.arrays import Flags, Floats, Integers, ratio


@dataclass(frozen=True, slots=True)
class Updates:
    """Updates [R, U]: `present`, records N, their sum, `share` 1/N, `repeat_share` Q/N^2, last window; 0 if absent.

    Q is the sum of squared records of the windows: Q/N^2 is 1 for an update of one window, less for several.
    """

    present: Flags
    records: Floats
    total: Floats
    share: Floats
    repeat_share: Floats
    window: Integers

    @property
    def count(self) -> Integers:
        """Number of updates of each channel [R]."""
        found: Integers = self.present.sum(axis=1)
        return found

    def at_windows(self, values: Floats, windows: int) -> Floats:
        """Place values of updates [R, U] at the windows [R, T] that complete them; 0 elsewhere."""
        found = np.zeros((len(values), windows))
        row, update = np.nonzero(self.present)
        found[row, self.window[row, update]] = values[row, update]
        return found


def pool_windows(n: Floats, total: Floats, least: Floats) -> Updates:
    """Pool windows [R, T] until each update has `least` [R] records; the remainder is dropped."""
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
    """Tell which windows [R, T] complete an update."""
    complete = np.zeros(n.shape[::-1], dtype=bool)
    held = np.zeros(len(n))
    for window, records in enumerate(np.ascontiguousarray(n.T)):
        held += records
        complete[window] = held >= least
        held[complete[window]] = 0.0
    return complete.T
