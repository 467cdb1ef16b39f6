"""Workers and jobs as processes that may end at a crash point."""

import signal
from pathlib import Path
from typing import Literal, NamedTuple

from ragtide.evaluators.spec import Lane
from ragtide.stream.jobs_process import run as run_jobs
from ragtide.stream.settings.loader import load
from ragtide.stream.worker.process import run_lane_process
from tests.chaos.crash_points import arm
from tests.infra.forked import Forked

Part = Literal["worker", "jobs"]


class Ending(NamedTuple):
    """At which crash point, and by which signal."""

    point: str
    number: signal.Signals


def forked(part: Part, config: Path, log: Path, ending: Ending | None = None, lane: Lane = "fast") -> Forked:
    """A worker of that lane, or the jobs."""
    return Forked(log, _work, part, config, ending, lane)


def _work(part: Part, config: Path, ending: Ending | None, lane: Lane) -> int:
    loaded = load(config, {})
    if ending is not None:
        arm(*ending)
    return run_lane_process(loaded.settings, lane, 0) if part == "worker" else run_jobs(loaded)
