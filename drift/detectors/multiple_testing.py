"""Bound false alarms of a whole fleet of series: e-BH (Wang and Ramdas 2022).

For users who want a run length of all series together; each series' own threshold bounds its own only.
"""

import numpy as np

from ragtide.drift.detectors.arrays import Flags, Floats
from ragtide.drift.detectors.baseline import log_threshold


def e_bh(log_e: Floats, size_s: int, run_length_days: float = 1.0) -> Flags:
    """Select the k series [S] with the most evidence, with the largest k such that log M >= log(A S / k) for all.

    A is the run length of the fleet in windows.
    """
    series = len(log_e)
    order = np.argsort(-log_e, kind="stable")
    wanted = log_threshold(size_s, 1 / run_length_days) + np.log(series / np.arange(1, series + 1))
    enough = np.flatnonzero(log_e[order] >= wanted)
    found = np.zeros(series, dtype=bool)
    found[order[: enough[-1] + 1 if len(enough) else 0]] = True
    return found
