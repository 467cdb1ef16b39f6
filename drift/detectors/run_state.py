"""State of a detector between windows: evidence, pooled windows and alarms; a run needs only the newest windows.

Running window by window leaves, bit for bit, the state of one run over all windows. Keep a copy of the state to return
to when late records revise windows: about 1 KB per series with two channels.

An alarm opens by the evidence. It resolves when, in its direction, the mean residual of the last 12 updates is at most
max(margin, half the estimated shift), for 12 consecutive updates. Then the series' evidence restarts.
Shapes: S series, C channels."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from ragtide.drift.array_types import Flags, Floats, Integers, Numbers
from ragtide.drift.detectors import e_detector
from ragtide.drift.detectors.arrays import RunResult, ratio
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.e_detector import Evidence, Update

ROLLING_UPDATES = 12
STATE_VERSION = 3


@dataclass(frozen=True, slots=True)
class Alarms:
    """Alarm of each series [S]: channel, direction, window of the onset, and sums since then.

    `recent_means` [S, 12]: last means of residuals over enough records; `mean_count`: their number so far;
    `pending_records`: records of the next one; `good_updates`: consecutive good updates.
    """

    on: Flags
    channel: Numbers
    direction: Numbers
    onset: Numbers
    records: Floats
    residual: Floats
    expected: Floats
    recent_means: Floats
    mean_count: Numbers
    pending_records: Floats
    pending_residual: Floats
    good_updates: Numbers

    @classmethod
    def none(cls, series: int) -> "Alarms":
        """Return the state without alarms."""
        kinds: dict[str, type] = {"on": np.bool_, "channel": np.int16, "direction": np.int8, "good_updates": np.int8}
        kinds |= {"onset": np.int32, "mean_count": np.int32}
        shapes = {"recent_means": (series, ROLLING_UPDATES)}
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.zeros(shapes.get(name, (series,)), kinds.get(name, np.float64)) for name in names})

    def mean(self, total: Floats) -> Floats:
        """Return a total since the onset per record; 0 without an alarm."""
        return np.where(self.on, ratio(total, self.records), 0.0)

    @property
    def shift(self) -> Floats:
        """Mean residual since the onset; 0 without an alarm."""
        return self.mean(self.residual)


def _update_open(alarms: Alarms, update: Update, margin: Floats, min_records: Floats) -> Flags:
    """Apply an update to open alarms, in place; return the series [S] whose alarm it resolved.

    `margin` [S, C] has the unit of residuals. A mean covers `min_records` [S, C].
    """
    on = np.flatnonzero(alarms.on)
    on = on[update.present[on, alarms.channel[on]]]
    if not len(on):
        return np.zeros(len(alarms.on), dtype=bool)
    channel = alarms.channel[on]
    records, residual = update.records[on, channel], update.residual[on, channel]
    alarms.records[on] += records
    alarms.residual[on] += residual
    alarms.expected[on] += update.expected[on, channel]
    alarms.pending_records[on] += records
    alarms.pending_residual[on] += residual
    _add_means(alarms, on[alarms.pending_records[on] >= min_records[on, channel]], margin)
    resolved = alarms.on & (alarms.good_updates >= ROLLING_UPDATES)
    alarms.on[resolved] = False
    return resolved


def _add_means(alarms: Alarms, series: Numbers, margin: Floats) -> None:
    mean = alarms.pending_residual[series] / alarms.pending_records[series]
    alarms.recent_means[series, alarms.mean_count[series] % ROLLING_UPDATES] = mean
    alarms.mean_count[series] += 1
    alarms.pending_records[series] = alarms.pending_residual[series] = 0.0
    direction = alarms.direction[series]
    allowed = np.maximum(margin[series, alarms.channel[series]], direction * alarms.shift[series] / 2)
    off = direction * alarms.recent_means[series].sum(axis=1) / ROLLING_UPDATES
    near = (alarms.mean_count[series] >= ROLLING_UPDATES) & (off <= allowed)
    alarms.good_updates[series] = np.where(near, alarms.good_updates[series] + 1, 0)


def _open_alarms(alarms: Alarms, evidence: Evidence, log_e: Floats, threshold: float, active: Flags) -> None:
    """Open alarms of series [S] whose evidence reached the threshold, in place, by the best alternative."""
    series = np.flatnonzero(~alarms.on & (log_e >= threshold))
    if not len(series):
        return
    log_m = np.where(active[series, :, None, None], evidence.log_m[series], e_detector.NO_EVIDENCE)
    best = np.unravel_index(log_m.reshape(len(series), -1).argmax(axis=1), log_m.shape[1:])
    alarms.on[series] = True
    alarms.channel[series] = best[0]
    alarms.direction[series] = 1 - 2 * best[1]
    at = (series, *best)
    alarms.onset[series] = evidence.onset[at]
    alarms.records[series] = evidence.records[at]
    alarms.residual[series] = evidence.residual[at]
    alarms.expected[series] = evidence.expected[at]
    alarms.recent_means[series] = 0.0
    for counter in (alarms.mean_count, alarms.pending_records, alarms.pending_residual, alarms.good_updates):
        counter[series] = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """Windows that wait for more records [S, C]: the first one, records, sum of squared records, and sums.

    `variance`: sum over windows of records times variance, in units of the usual variance.
    """

    first: Numbers
    records: Floats
    squares: Floats
    residual: Floats
    expected: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class State:
    """Evidence, alarms and pooled windows of each series, and the end of its last window [S], in seconds."""

    evidence: Evidence
    alarms: Alarms
    pool: Pool
    until: Numbers


@dataclass(frozen=True, slots=True)
class Status:
    """Status of each series, all [S]: in alarm, channel, direction (1 up, -1 down), onset in seconds.

    `expected` and `observed` are means over records since the onset, in the metric's unit or as a share of records;
    `shift` is their difference. All are 0 without an alarm. `evidence`: log of the e-value.
    """

    alarm: Flags
    channel: Numbers
    direction: Numbers
    onset: Integers
    expected: Floats
    observed: Floats
    shift: Floats
    evidence: Floats


def start_state(baseline: Baseline) -> State:
    """Return the state before the first window."""
    channels, alternatives = baseline.shifts.shape[1:]
    series = baseline.series
    pool = Pool(np.zeros((series, channels), np.int32), *np.zeros((5, series, channels)))
    until = np.full(series, np.iinfo(np.int64).min)
    return State(Evidence.none(series, channels, alternatives), Alarms.none(series), pool, until)


def detector_status(baseline: Baseline, state: State) -> Status:
    """Return the status of each series."""
    alarms = state.alarms
    expected, shift = alarms.mean(alarms.expected), alarms.shift
    return Status(
        alarm=alarms.on.copy(),
        channel=np.where(alarms.on, alarms.channel, 0),
        direction=np.where(alarms.on, alarms.direction, 0),
        onset=np.where(alarms.on, alarms.onset.astype(np.int64) * baseline.size_s, 0),
        expected=expected,
        observed=expected + shift,
        shift=shift,
        evidence=e_detector.log_e(state.evidence, baseline.active),
    )


def run(baseline: Baseline, state: State, start: Integers, update_at: Callable[[int, int], Update]) -> RunResult:
    """Run over windows; `state` advances to their end.

    `update_at` returns the update of a window, given its index and start, and may change the state's pool.
    Raises `ValueError` if a window was run before, or does not lie on the baseline's grid.
    """
    if (start % baseline.size_s).any() or (np.diff(start) != baseline.size_s).any():
        raise ValueError(f"windows do not lie on a grid of {baseline.size_s} s")
    if len(start):
        if (state.until > start[0]).any():
            raise ValueError("windows were looked at before: go back to a state kept from before them")
        state.until[:] = start[-1] + baseline.size_s
    shape = (baseline.series, len(start))
    result = RunResult(np.zeros(shape, bool), np.zeros(shape))
    for index, at in enumerate(start.tolist()):
        result.evidence[:, index] = _step(baseline, state, update_at(index, at))
        result.alarm[:, index] = state.alarms.on
    return result


def _step(baseline: Baseline, state: State, update: Update) -> Floats:
    """Update evidence and alarms, in place; return the log e-values [S]."""
    e_detector.add(state.evidence, update)
    resolved = _update_open(state.alarms, update, baseline.tolerance, baseline.min_records_to_clear)
    state.evidence.log_m[resolved] = e_detector.NO_EVIDENCE
    log_e = e_detector.log_e(state.evidence, baseline.active)
    _open_alarms(state.alarms, state.evidence, log_e, baseline.threshold, baseline.active)
    return log_e
