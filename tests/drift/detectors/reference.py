"""The running detectors told anew in plain Python, for one series: no arrays, no shortcuts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragtide.drift.detectors.baseline import Baseline

HOUR_S = 3600


@dataclass
class Told:
    """After a window: the log e-value (None before the first update) and, in alarm, channel, direction and onset."""

    log_e: float | None
    alarm: bool
    channel: int = 0
    direction: int = 0
    onset: int = 0
    shift: float = 0.0


@dataclass
class Sums:
    """Of the windows of an update, the first of which is the onset; `squares` of records, `variance` by record."""

    onset: int
    records: float = 0.0
    squares: float = 0.0
    residual: float = 0.0
    variance: float = 0.0


@dataclass
class Component:
    m: float = 0.0
    onset: int = 0
    records: float = 0.0
    residual: float = 0.0


@dataclass
class Reference:
    """One series of a baseline."""

    baseline: Baseline
    series: int
    components: dict[tuple[int, int, int], Component] = field(default_factory=dict)
    alarm: tuple[int, int, Component] | None = None
    recent: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=lambda: [0.0, 0.0])
    good: int = 0
    log_e: float | None = None

    def __post_init__(self) -> None:
        channels, alternatives = self.baseline.shifts.shape[1:]
        self.channels = [c for c in range(channels) if self.baseline.active[self.series, c]]
        self.components = {(c, d, k): Component() for c in self.channels for d in (1, -1) for k in range(alternatives)}

    def number(self, name: str, *at: int) -> float:
        return float(getattr(self.baseline, name)[(self.series, *at)])

    def level(self, channel: int, start: int) -> float:
        """Its own; else between the centres of the hours before and after the window's middle."""
        own = self._own(channel, start)
        if own is not None:
            return self._recurring("level", channel, own)
        middle = start + self.baseline.size_s / 2
        before = math.floor((middle - HOUR_S / 2) / HOUR_S)
        share = (middle - HOUR_S / 2) / HOUR_S - before
        if self._slot("weekly", channel, before) != self._slot("weekly", channel, before + 1):
            return self._slot("level", channel, math.floor(middle / HOUR_S))
        return self._slot("level", channel, before) * (1 - share) + self._slot("level", channel, before + 1) * share

    def variance(self, channel: int, start: int) -> float:
        """How many times the usual one."""
        own = self._own(channel, start)
        return 1.0 if own is None else self._recurring("variance", channel, own)

    def _own(self, channel: int, start: int) -> int | None:
        """Where the moment stands among those with a level of their own: on this kind of day, or day of the week."""
        weekday, moment = (start // 86_400 + 3) % 7, start % 86_400 // 300
        wanted = {288 * (weekday > 4) + moment, 288 * (2 + weekday) + moment}
        kept = self.baseline.recurring.moment[self.series, channel].tolist()
        return next((place for place, one in enumerate(kept) if one in wanted), None)

    def _recurring(self, name: str, channel: int, place: int) -> float:
        return float(getattr(self.baseline.recurring, name)[self.series, channel, place])

    def _slot(self, name: str, channel: int, hour: int) -> float:
        weekday = (hour // 24 + 3) % 7
        return self.number(name, channel, weekday * 24 + hour % 24)

    def told(self) -> Told:
        if self.alarm is None:
            return Told(self.log_e, False)
        channel, direction, since = self.alarm
        return Told(self.log_e, True, channel, direction, since.onset, since.residual / since.records)

    def update(self, updates: dict[int, Sums], increment: Any) -> None:
        """One update, of some channels; `increment(channel, direction, alternative)`."""
        for (c, d, k), one in self.components.items():
            if c not in updates:
                continue
            if one.m <= 1:
                one.onset, one.records, one.residual = updates[c].onset, 0.0, 0.0
            one.records += updates[c].records
            one.residual += updates[c].residual
            one.m = (1 + one.m) * math.exp(min(increment(c, d, k), 10.0))
        if self.alarm is not None and self.alarm[0] in updates:
            self._follow(updates[self.alarm[0]])
        mean = math.fsum(one.m for one in self.components.values()) / len(self.components)
        self.log_e = math.log(mean) if mean > 0 else None
        if self.alarm is None and mean >= math.exp(self.baseline.threshold):
            (c, d, _), best = max(self.components.items(), key=lambda item: item[1].m)
            self.alarm = (c, d, Component(0.0, best.onset, best.records, best.residual))
            self.recent, self.waiting, self.good = [], [0.0, 0.0], 0

    def _follow(self, sums: Sums) -> None:
        assert self.alarm is not None
        channel, direction, since = self.alarm
        since.records += sums.records
        since.residual += sums.residual
        self.waiting = [self.waiting[0] + sums.records, self.waiting[1] + sums.residual]
        if self.waiting[0] < self.number("min_records_to_clear", channel):
            return
        self.recent.append(self.waiting[1] / self.waiting[0])
        self.waiting = [0.0, 0.0]
        allowed = max(self.number("tolerance", channel), direction * since.residual / since.records / 2)
        near = len(self.recent) >= 12 and direction * sum(self.recent[-12:]) / 12 <= allowed
        self.good = self.good + 1 if near else 0
        if self.good == 12:
            self.alarm = None
            for one in self.components.values():
                one.m = 0.0


def scores(baseline: Baseline, series: int, windows: Sequence[tuple[int, float, float, float]]) -> Iterator[Told]:
    """Windows are (start, n, total, squares)."""
    told = Reference(baseline, series)
    pool: dict[int, Sums] = {}
    for start, n, total, squares in windows:
        if n > 0:
            of_channel = {0: (n, total), 1: (n - 1, squares - total * total / n)}
            for channel, (records, value) in of_channel.items():
                sums = pool.setdefault(channel, Sums(start))
                sums.records += records
                sums.squares += records**2
                sums.residual += value - records * told.level(channel, start)
                sums.variance += records * told.variance(channel, start)
        ready = {channel: sums for channel, sums in pool.items() if sums.records >= 30}
        if ready:
            _score_update(told, ready)
        pool = {channel: sums for channel, sums in pool.items() if channel not in ready}
        yield told.told()


def _score_update(told: Reference, updates: dict[int, Sums]) -> None:
    def increment(channel: int, direction: int, alternative: int) -> float:
        sums, way = updates[channel], (1 - direction) // 2
        n = sums.records
        variance = (
            told.number("noise_per_record", channel) / n + told.number("noise_floor", channel) * sums.squares / n**2
        )
        jump = told.number("third_moment", channel, way) / n**2 / variance
        most = max(6 * math.sqrt(variance), jump)
        x = direction * sums.residual / n - told.number("margin", channel, way)
        x = min(max(x, -most), most)
        shift = told.number("shifts", channel, alternative)
        rate = variance / jump**2  # of a Poisson variable of which the error is `jump` times, less its mean
        likelihood = (x / jump + rate) * math.log1p(shift / jump / rate) - shift / jump
        return likelihood / told.number("inflation", channel, way, alternative) / (sums.variance / n)

    told.update(updates, increment)


def shares(baseline: Baseline, series: int, windows: Sequence[tuple[int, float, Sequence[float]]]) -> Iterator[Told]:
    """Windows are (start, n, hits of each channel)."""
    told = Reference(baseline, series)
    for start, n, hits in windows:
        if n > 0:
            _share_update(told, start, n, hits)
        yield told.told()


def _share_update(told: Reference, start: int, n: float, hits: Sequence[float]) -> None:
    ratios = (1.25, 1.5, 2.0, 3.0, 5.0)

    def increment(channel: int, direction: int, alternative: int) -> float:
        level, way = told.level(channel, start), (1 - direction) // 2
        odds = level / (1 - level) * math.exp(direction * told.number("margin", channel, way))
        other = odds * ratios[alternative] ** direction
        null, changed = odds / (1 + odds), other / (1 + other)
        better = changed / null if null else ratios[alternative] ** direction
        likelihood = hits[channel] * math.log(better) + (n - hits[channel]) * math.log((1 - changed) / (1 - null))
        usual = max(n, told.number("records", channel))
        spread = told.number("noise_per_record", channel) + told.number("noise_floor", channel) * usual
        spread *= told.variance(channel, start)
        return likelihood / spread / told.number("inflation", channel, way, alternative)

    told.update({c: Sums(start, n, n * n, hits[c] - n * told.level(c, start)) for c in told.channels}, increment)
