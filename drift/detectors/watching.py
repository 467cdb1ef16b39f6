"""What is carried from window to window, so that a run needs only the windows since the last one.

A run over some windows and then over the next ones leaves, bit for bit, what one run over all of them leaves. Keep
a copy of the state to go back to when late records revise windows: about 1 KB a series with two channels.
Shapes: S series, C channels.
"""

from dataclasses import dataclass

import numpy as np

from drift.detectors import alarms, evidence
from drift.detectors.alarms import Alarms
from drift.detectors.baseline import Baseline
from drift.detectors.evidence import Evidence, Update
from drift.detectors.series import Flags, Floats, Integers, Numbers

VERSION = 2


@dataclass(frozen=True, slots=True)
class Pool:
    """Windows that wait for more records: the first of them, records and sums of their squares, sums; all [S, C].

    `variance`: the sum of records times how many times the usual variance theirs is.
    """

    first: Numbers
    records: Floats
    squares: Floats
    residual: Floats
    expected: Floats
    variance: Floats


@dataclass(frozen=True, slots=True)
class State:
    """Of each series: evidence, alarms, what is pooled, and up to when its windows were looked at [S] (seconds)."""

    evidence: Evidence
    alarms: Alarms
    pool: Pool
    until: Numbers


@dataclass(frozen=True, slots=True)
class Reading:
    """What to tell of each series now, all [S]: in alarm, by which channel, up (1) or down (-1), since when (seconds).

    `expected` and `observed` are means over the records since the onset, `shift` is their difference, in the metric's
    unit or as a share of records; all 0 without an alarm. `evidence`: log of the e-value.
    """

    alarm: Flags
    channel: Numbers
    direction: Numbers
    onset: Integers
    expected: Floats
    observed: Floats
    shift: Floats
    evidence: Floats


def start(baseline: Baseline) -> State:
    """Nothing seen yet."""
    channels, alternatives = baseline.shifts.shape[1:]
    series = baseline.series
    pool = Pool(np.zeros((series, channels), np.int32), *np.zeros((5, series, channels)))
    until = np.full(series, np.iinfo(np.int64).min)
    return State(Evidence.none(series, channels, alternatives), Alarms.none(series), pool, until)


def read(baseline: Baseline, state: State) -> Reading:
    """The state in words of numbers."""
    on = state.alarms.on
    records = np.where(on & (state.alarms.records > 0), state.alarms.records, 1.0)
    expected = np.where(on, state.alarms.expected / records, 0.0)
    shift = state.alarms.shift
    return Reading(
        alarm=on.copy(),
        channel=np.where(on, state.alarms.channel, 0),
        direction=np.where(on, state.alarms.direction, 0),
        onset=np.where(on, state.alarms.onset.astype(np.int64) * baseline.size_s, 0),
        expected=expected,
        observed=expected + shift,
        shift=shift,
        evidence=evidence.log_e(state.evidence, baseline.active),
    )


def conclude(baseline: Baseline, state: State, update: Update) -> Floats:
    """Evidence and alarms after an update, in place; the log e-values [S]."""
    evidence.add(state.evidence, update)
    resolved = alarms.follow(state.alarms, update, baseline.near, baseline.settle)
    if resolved.any():
        evidence.restart(state.evidence, resolved)
    log_e = evidence.log_e(state.evidence, baseline.active)
    alarms.open_new(state.alarms, state.evidence, log_e, baseline.threshold, baseline.active)
    return log_e


def advance(baseline: Baseline, state: State, windows: Integers) -> None:
    """Mark windows as looked at. Raises `ValueError` where one was before, or is not on the baseline's grid."""
    if (windows % baseline.size_s).any() or (np.diff(windows) != baseline.size_s).any():
        raise ValueError(f"windows do not lie on a grid of {baseline.size_s} s")
    if len(windows) and (state.until > windows[0]).any():
        raise ValueError("windows were looked at before: go back to a state kept from before them")
    if len(windows):
        state.until[:] = windows[-1] + baseline.size_s
