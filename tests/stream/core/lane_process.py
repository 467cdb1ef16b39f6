"""A lane as a process of its own: `python -m tests.stream.core.lane_process SETTINGS DIRECTORY LANE [SECONDS]`.

The real lane with a sink that a test can look into; SECONDS are slept over each slice.
"""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from evaluators.errors import RagwatchError
from evaluators.spec import Lane
from stream.assembly import assemble
from stream.ingest.records import Record
from stream.lanes.serve import serve
from stream.pipeline import Pipeline, Processed
from stream.settings import load
from stream.telemetry import logs
from tests.stream.core.line_sink import LineSink


class Slow:
    """The real pipeline, after a nap."""

    def __init__(self, pipeline: Pipeline, seconds: float) -> None:
        self._pipeline = pipeline
        self._seconds = seconds

    def process(self, records: Sequence[Record]) -> Processed:
        time.sleep(self._seconds)
        return self._pipeline.process(records)


async def main(settings_file: str, directory: str, lane: Lane, nap: float) -> None:
    settings = load(Path(settings_file), {}).settings
    logs.configure(settings.telemetry)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    pipeline = Slow(assemble(settings, lane).pipeline, nap)
    await serve(settings, lane, pipeline, LineSink(Path(directory)), stop, port=0)


if __name__ == "__main__":
    try:
        [lane] = (known for known in get_args(Lane) if known == sys.argv[3])
        asyncio.run(main(sys.argv[1], sys.argv[2], lane, float(sys.argv[4]) if len(sys.argv) > 4 else 0.0))
    except RagwatchError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
