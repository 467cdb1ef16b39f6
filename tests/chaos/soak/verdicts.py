"""What a soak calls well and what not: pure functions of what was measured."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RATE = 150  # traces a second of the steady part
PARTS = 12  # of the steady time, whose memory is compared
GROWTH = 0.01  # of memory in all of it, beyond noise
LAG_S = 10
LEAST_TIMES = 2  # so many times of what may be in flight wait at full input, else nothing is bounded
PAUSED_SHARE = 0.5  # of the time without the sink, at least


class Verdict(NamedTuple):
    """One bound: whether it held, and by what figures."""

    well: bool
    said: str


class Sample(NamedTuple):
    """The worker at a time in seconds since the beginning."""

    at_s: float
    rss_mb: float
    lag: float


class Slope(NamedTuple):
    """Growth per hour and its standard error."""

    per_hour: float
    error: float


class Rows(NamedTuple):
    """Of a table."""

    rows: int
    traces: int


class Outage(NamedTuple):
    """What was seen while the sink was away, and after that.

    `before_mb`: resident memory of before, `allowed_mb` with what settings state. `after` begins when the sink is there
    again. `stored`, `scored`: rows, and distinct traces in them, of the first `bound` traces of the whole soak: all of
    them where everything was worked off, else those of before the outage.
    """

    away_s: float
    paused_s: float
    input_bytes: int
    in_flight_bytes: int
    before_mb: float
    allowed_mb: float
    away: Sequence[Sample]
    after: Sequence[Sample]
    bound: int
    stored: Rows
    scored: Rows


def slope(at_s: Sequence[float], values: Sequence[float]) -> Slope:
    """By least squares."""
    (per_hour, _), covariance = np.polyfit(np.array(at_s) / 3600, np.array(values), 1, cov=True)
    return Slope(float(per_hour), float(np.sqrt(covariance[0, 0])))


def memory_slope(samples: Sequence[Sample]) -> Slope:
    """Of resident memory, in MB, from part to part by their medians.

    Memory of a process moves in steps, where more was at work at once than ever before. A line through all samples
    would take each of them for news, and its slope for certain.
    """
    levels = [np.median(part) for part in np.array_split([sample.rss_mb for sample in samples], PARTS)]
    steps = np.diff(levels) / ((samples[-1].at_s - samples[0].at_s) / 3600 / PARTS)
    return Slope(float(steps.mean()), float(steps.std(ddof=1) / math.sqrt(len(steps))))


def grows(samples: Sequence[Sample]) -> bool:
    """Whether memory grows by more than noise, and by more than a little."""
    found, hours = memory_slope(samples), (samples[-1].at_s - samples[0].at_s) / 3600
    return (found.per_hour - 2 * found.error) * hours > GROWTH * samples[0].rss_mb


def last_fifth(samples: Sequence[Sample]) -> Sequence[Sample]:
    """At least one."""
    return samples[-max(1, len(samples) // 5) :]


def of_steady(samples: Sequence[Sample]) -> list[Verdict]:
    """Of the steady part, of a worker that is warm."""
    found, lag = memory_slope(samples), float(np.median([sample.lag for sample in last_fifth(samples)]))
    moved = f"{samples[0].rss_mb:.1f} to {samples[-1].rss_mb:.1f} MB, {found.per_hour:+.1f} ± {found.error:.1f} MB/h"
    return [
        Verdict(not grows(samples), f"memory grows by less than {GROWTH:.0%} beyond noise: {moved}"),
        Verdict(
            lag <= LAG_S * RATE,
            f"lag is at most {LAG_S} s of input: median of the last fifth {lag:.0f} records, {lag / RATE:.2f} s",
        ),
    ]


def of_outage(seen: Outage) -> list[Verdict]:
    """Of the part without the sink."""
    times, most_mb = seen.input_bytes / seen.in_flight_bytes, max(one.rss_mb for one in (*seen.away, *seen.after))
    return [
        Verdict(
            times >= LEAST_TIMES,
            f"input is full, at least {LEAST_TIMES} times what may be in flight: {seen.input_bytes / 1e6:.0f} MB sent, "
            f"{times:.1f} times",
        ),
        Verdict(
            most_mb <= seen.allowed_mb,
            f"memory stays within what settings state: at most {most_mb:.1f} MB of {seen.allowed_mb:.1f} MB, "
            f"{seen.before_mb:.1f} MB before",
        ),
        Verdict(
            seen.paused_s >= PAUSED_SHARE * seen.away_s,
            f"fetching pauses for at least {PAUSED_SHARE:.0%} of the time away: {seen.paused_s:.0f} of "
            f"{seen.away_s:.0f} s",
        ),
        Verdict(worked_off(seen.after) or falls(seen.after), f"lag is worked off or falls: {_lags(seen.after)}"),
        _once("stored", seen.stored, seen.bound),
        _once("scored", seen.scored, seen.bound),
    ]


def worked_off(samples: Sequence[Sample]) -> bool:
    """Whether nothing waits any more."""
    return samples[-1].lag == 0


def falls(samples: Sequence[Sample]) -> bool:
    """Whether lag falls in the second half, by more than noise."""
    half = samples[len(samples) // 2 :]
    if len(half) < 4:
        return False
    found = slope([sample.at_s for sample in half], [sample.lag for sample in half])
    return found.per_hour + 3 * found.error < 0


def _lags(samples: Sequence[Sample]) -> str:
    """From the most: what came while nothing was fetched is known only once fetching goes on."""
    took_s, most = samples[-1].at_s - samples[0].at_s, max(sample.lag for sample in samples)
    return f"{most:.0f} to {samples[-1].lag:.0f} records in {took_s:.0f} s"


def _once(what: str, found: Rows, bound: int) -> Verdict:
    lost, doubled = bound - found.traces, found.rows - found.traces
    return Verdict(
        lost == doubled == 0, f"each of the first {bound} traces is {what} once: {lost} lost, {doubled} doubled"
    )
