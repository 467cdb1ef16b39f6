"""One session of the demo: send traffic, switch faults by the schedule, show the results."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ragtide.drift.problems import Groups, Problem, group, load_problems
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.demo.console import View
from ragtide.stream.demo.display import Display
from ragtide.stream.demo.observe import Snapshot, describe_delay, observe
from ragtide.stream.demo.shown_metrics import ShownMetric
from ragtide.stream.demo.timeline import Timeline
from ragtide.stream.demo.traffic import Traffic
from ragtide.stream.local.processes import Children
from ragtide.stream.local.services import LocalServices

_EVERY_S = 1.0
_FIRST_SCORE_WITHIN_S = 120.0
_TREND = 20  # windows


@dataclass(frozen=True, slots=True)
class Session:
    """Plays until Ctrl-C, SIGTERM or `minutes` after the first score.

    Raises ConfigError if a child ended unexpectedly or nothing is scored.
    """

    database: Database
    display: Display
    services: LocalServices
    children: Children
    timeline: Timeline
    shown_metrics: Sequence[ShownMetric]
    base_s: int
    minutes: float | None
    clock: Callable[[], datetime]
    dashboards: str  # address of the viewer
    usual_delay_s: float  # of the jobs, from the end of a window

    async def play(self, traffic: Traffic) -> None:
        """Send, watch and show."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        sending = asyncio.create_task(traffic.run())
        began = loop.time()
        snapshot: Snapshot | None = None
        problems: Sequence[Problem] = ()
        groups = group(problems, self.clock())
        try:
            while not stop.is_set() and not self._over():
                self._alive(loop.time() - began)
                if sending.done():
                    sending.result()
                try:
                    snapshot = await asyncio.to_thread(observe, self.database, base_s=self.base_s, keep=_TREND)
                    problems = await asyncio.to_thread(load_problems, self.database)
                    groups = group(problems, self.clock())
                except Transient:
                    pass  # the sink is busy or away: the last figures stand
                if snapshot and snapshot.scores and self.timeline.elapsed_s is None:
                    self.timeline.begin()
                if snapshot:
                    self.timeline.judged(snapshot.judged_until)
                self.display.update(self._view(traffic, snapshot, problems, groups))
                await _sleep(stop, _EVERY_S)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _over(self) -> bool:
        elapsed = self.timeline.elapsed_s
        return self.minutes is not None and elapsed is not None and elapsed >= self.minutes * 60

    def _alive(self, waited_s: float) -> None:
        if name := self.services.ended():
            raise ConfigError(f"{name} ended unexpectedly; see {self.services.directory}")
        child = self.children.ended()
        if child is not None:
            raise ConfigError(
                f"{child.name} ended with code {child.exit_code}; its log is {child.log}:", *child.last_lines()
            )
        if self.timeline.elapsed_s is None and waited_s > _FIRST_SCORE_WITHIN_S:
            logs = ", ".join(str(child.log) for child in self.children)
            raise ConfigError(f"no trace was scored within {_FIRST_SCORE_WITHIN_S:.0f} s; see {logs}")

    def _view(self, traffic: Traffic, snapshot: Snapshot | None, problems: Sequence[Problem], groups: Groups) -> View:
        return View(
            stage="waiting for the first score",
            elapsed_s=self.timeline.elapsed_s,
            fault=self.timeline.now(),
            sent=traffic.sent,
            snapshot=snapshot,
            shown_metrics=self.shown_metrics,
            problems=groups.fold(problems),
            groups=groups,
            delay=self._delay(snapshot),
            dashboards=self.dashboards,
        )

    def _delay(self, snapshot: Snapshot | None) -> str:
        metrics = [one.metric for one in self.shown_metrics]
        return "" if snapshot is None else describe_delay(snapshot, metrics, self.clock(), self.usual_delay_s)


async def _sleep(stop: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
