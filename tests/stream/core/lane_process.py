"""A lane as a process of its own: the real one, with a sink that a test can look into."""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ragtide.evaluators.errors import RagtideError
from ragtide.evaluators.spec import Lane
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import Record
from ragtide.stream.pipeline import Pipeline, SliceResult
from ragtide.stream.settings.loader import load
from ragtide.stream.telemetry import logs
from ragtide.stream.worker.lane import run_lane
from tests.stream.core.line_sink import LineSink


class Slow:
    """The real pipeline, after a nap."""

    def __init__(self, pipeline: Pipeline, seconds: float) -> None:
        self._pipeline = pipeline
        self._seconds = seconds

    def process(self, records: Sequence[Record]) -> SliceResult:
        time.sleep(self._seconds)
        return self._pipeline.process(records)


def run(settings_file: Path, directory: Path, lane: Lane, nap_s: float) -> int:
    """Until SIGTERM; the exit status. `nap_s` is slept over each slice."""
    try:
        asyncio.run(_serve(settings_file, directory, lane, nap_s))
    except RagtideError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


async def _serve(settings_file: Path, directory: Path, lane: Lane, nap_s: float) -> None:
    settings = load(settings_file, {}).settings
    logs.configure(settings.telemetry)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    pipeline = Slow(assemble(settings, lane).pipeline, nap_s)
    await run_lane(settings, lane, pipeline, LineSink(directory), stop, port=0)
