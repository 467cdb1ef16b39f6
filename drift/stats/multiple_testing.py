"""Correction for multiple testing: of p-values (Benjamini-Hochberg) and of e-values (e-BH). Pure."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple testing: of findings with p <= alpha, an expected share of alpha at most is false.

    Benjamini and Hochberg (1995).
    """
    from scipy.stats import false_discovery_control

    return [float(value) for value in false_discovery_control(p)] if p else []


def e_bh(log_e: npt.NDArray[np.float64], log_threshold: float) -> npt.NDArray[np.bool_]:
    """Select the k series [S] with the most evidence, with the largest k such that log M >= log(A S / k) for all.

    `log_threshold` is log A, where A is the run length of all series together, in windows. For users who want to bound
    the false alarms of all series; each series' own threshold bounds its own only. Wang and Ramdas (2022).
    """
    series = len(log_e)
    order = np.argsort(-log_e, kind="stable")
    wanted = log_threshold + np.log(series / np.arange(1, series + 1))
    enough = np.flatnonzero(log_e[order] >= wanted)
    found = np.zeros(series, dtype=bool)
    found[order[: enough[-1] + 1 if len(enough) else 0]] = True
    return found
