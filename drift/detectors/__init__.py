"""Detect changes of many series at once, from windows as arrays. Pure, with a stated run length to a false alarm.

A share that doubles for half a day raises an alarm within it:

>>> import numpy as np
>>> random, start = np.random.default_rng(1), np.arange(0, 4 * 86_400, 300)
>>> n = np.full((1, len(start)), 50)
>>> hits = random.binomial(n, np.where(start < 3 * 86_400, 0.1, 0.2))
>>> history, later = (Rates(start[some], n[:, some], hits[:, some]) for some in (slice(864), slice(864, 1008)))
>>> baseline = fit_baseline(history)
>>> state = start_state(baseline)
>>> bool(run_detector(baseline, state, later).alarm.any())
True
>>> status = detector_status(baseline, state)
>>> int(status.direction[0]), float(status.expected[0].round(1)), float(status.observed[0].round(1))
(1, 0.1, 0.2)
"""

from ragtide.drift.detectors import serialization
from ragtide.drift.detectors.arrays import (
    LEVELS,
    Categories,
    HeavyTailed,
    Rates,
    Scores,
    level_bin,
    level_values,
    quantile_bins,
)
from ragtide.drift.detectors.baseline import BASELINE_VERSION, FALSE_ALARMS_A_DAY, Baseline, WarmUp, log_threshold
from ragtide.drift.detectors.dispatch import (
    Windows,
    channel_sums,
    exclude_windows,
    fit_baseline,
    record_counts,
    relevel_baseline,
    run_detector,
    select_series,
)
from ragtide.drift.detectors.outlier_hours import MAX_OUTLIERS
from ragtide.drift.detectors.proportions import HEAVY_TAILED_CHANNELS
from ragtide.drift.detectors.run_state import STATE_VERSION, State, Status, detector_status, start_state
from ragtide.drift.detectors.scores import SCORE_CHANNELS, SPREAD_MARGIN
from ragtide.drift.detectors.season import SEASONAL_DAYS
from ragtide.drift.detectors.time_of_day import TICK_S, TICKS_PER_DAY, RecurringTicks

__all__ = [
    "BASELINE_VERSION",
    "FALSE_ALARMS_A_DAY",
    "HEAVY_TAILED_CHANNELS",
    "LEVELS",
    "MAX_OUTLIERS",
    "SCORE_CHANNELS",
    "SEASONAL_DAYS",
    "SPREAD_MARGIN",
    "STATE_VERSION",
    "TICKS_PER_DAY",
    "TICK_S",
    "Baseline",
    "Categories",
    "HeavyTailed",
    "Rates",
    "RecurringTicks",
    "Scores",
    "State",
    "Status",
    "WarmUp",
    "Windows",
    "channel_sums",
    "detector_status",
    "exclude_windows",
    "fit_baseline",
    "level_bin",
    "level_values",
    "log_threshold",
    "quantile_bins",
    "record_counts",
    "relevel_baseline",
    "run_detector",
    "select_series",
    "serialization",
    "start_state",
]
