"""`ragtide replay`."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import EventTime, FiniteRange, config_option, lanes_named, settings_from, split
from ragtide.stream.cli.replay_settings import as_variables, batch_option, choose, set_option
from ragtide.stream.terminal import say

if TYPE_CHECKING:
    from ragtide.stream.ingest.records import Record
    from ragtide.stream.ingest.timeliness import EventBounds
    from ragtide.stream.pipeline import Interval
    from ragtide.stream.replay.loop import ReplaySource
    from ragtide.stream.replay.runs import RunRow
    from ragtide.stream.settings.loader import Settings


@click.command()
@click.option("--run", "run_id", required=True, metavar="NAME", help="Run to write to. `live` backfills live windows.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Topic to read. Default: kafka.topics.")
@click.option(
    "--from", "start", type=EventTime(), help="Start of the range of event time. Default: the start of the topic."
)
@click.option(
    "--to",
    "end",
    type=EventTime(),
    help="End of the range of event time, not included. Default: the current end of the topic.",
)
@click.option(
    "--offsets",
    multiple=True,
    metavar="TOPIC:PARTITION:START-END",
    help="Range of offsets, END not included. Repeat for more partitions.",
)
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="File of traces as JSON lines, in place of a topic."
)
@click.option(
    "--evaluators", multiple=True, metavar="ID[,ID]", help="Only these evaluators. Default: all that can run."
)
@click.option(
    "--lane",
    "lanes",
    multiple=True,
    metavar="LANE[,LANE]",
    help="Only evaluators of these lanes (fast, model, judge); only their models are loaded. Default: all.",
)
@click.option(
    "--late",
    "late_s",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    help="Longest delay between a trace's event time and its arrival at the broker. Default: ingest.max_age_s.",
)
@batch_option
@set_option
@config_option
def command(
    run_id: str,
    topics: tuple[str, ...],
    start: datetime | None,
    end: datetime | None,
    offsets: tuple[str, ...],
    file: Path | None,
    evaluators: tuple[str, ...],
    lanes: tuple[str, ...],
    late_s: float | None,
    by_batch: bool,
    changes: tuple[str, ...],
    config: Path | None,
) -> None:
    """Evaluate a range of a topic, or a file, into run NAME, with the same pipeline as live traffic.

    A run has its own rows, windows and dead letters, and never touches live ones. If stopped or killed, repeat the
    command to continue. A finished run leaves the same rows if repeated. A run cannot continue with other settings:
    choose a new NAME.

    \b
    Examples:
      ragtide replay --run monday --from 2026-03-02 --to 2026-03-03
      ragtide replay --run new-threshold --topic rag.traces --evaluators groundedness,rouge --from 2026-03-02T09:00Z
      ragtide replay --run stems --offsets rag.traces:0:500-900 --set evaluators.params.rouge.use_stemmer=true
      ragtide replay --run import --file traces.jsonl
      ragtide replay --run rules --file traces.jsonl --lane fast                    # loads no encoder and no model
      ragtide replay --run judged --from 2026-03-02 --to 2026-03-03 --lane judge --batch
      ragtide replay --run live --from 2026-03-02T09:00Z --to 2026-03-02T11:00Z   # backfill an outage
    """
    by_time = topics or start or end or late_s is not None
    if file is not None and (by_time or offsets):
        raise click.UsageError("--file is read whole: --topic, --from, --to, --late and --offsets are for topics")
    if offsets and by_time:
        raise click.UsageError("--offsets selects the records: --topic, --from, --to and --late are for ranges of time")
    if start is not None and end is not None and start >= end:
        raise click.UsageError("--from must lie before --to")
    check_name(run_id)
    settings = settings_from(config, as_variables(changes)).settings
    settings = choose(settings, split(evaluators), lanes_named(lanes))
    interval = _interval(start, end)
    if file is not None:
        source = _file_source(settings, file)
    elif offsets:
        source = _offset_source(settings, split(offsets))
    else:
        source = _topic_source(settings, split(topics), interval, late_s)
    done = fill(settings, run_id, source, interval, by_batch=by_batch)
    say(f"run {run_id}: {done.traces:,} traces, {done.dead_letters:,} dead letters, from {source.description}")


def check_name(run_id: str) -> None:
    """Raise a usage error for an invalid name of a run."""
    import re

    from ragtide.sinks.rows import PROBE

    if run_id == PROBE or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", run_id):
        raise click.BadParameter(
            f"{run_id!r}: letters, digits, '.', '_' and '-', at most 64; {PROBE!r} is taken", param_hint="--run"
        )


def _interval(start: datetime | None, end: datetime | None) -> "Interval | None":
    from ragtide.stream.pipeline import Interval

    if start is None and end is None:
        return None
    return Interval(start.timestamp() if start else 0.0, end.timestamp() if end else float("inf"))


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Make SIGTERM do the same as Ctrl-C."""

    def interrupt(_: int, frame: FrameType | None) -> None:
        on_ctrl_c = signal.getsignal(signal.SIGINT)  # the event loop has one of its own while it runs
        if not callable(on_ctrl_c):  # a shell had it ignored
            raise KeyboardInterrupt
        on_ctrl_c(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def fill(
    settings: "Settings",
    run_id: str,
    source: "ReplaySource",
    interval: "Interval | None" = None,
    on_stored: "Callable[[Sequence[Record]], None] | None" = None,
    event_bounds: "EventBounds | None" = None,
    by_batch: bool = False,
) -> "RunRow":
    """Replay `source` into a run, with a bar, and return the run. `on_stored`: see `ragtide.stream.replay.loop.replay`.

    Records beyond `event_bounds` are dead letters. With `by_batch` judges are asked through the Batch API of their
    endpoints.

    Once the run is claimed, Ctrl-C and SIGTERM stop it with a hint how to continue; stored rows stay.
    """
    import asyncio

    from ragtide.evaluators import registry
    from ragtide.sinks.clickhouse.database import Database
    from ragtide.sinks.clickhouse.sink import ClickHouseSink
    from ragtide.stream.assembly import assemble, gather_traces
    from ragtide.stream.cli.replay_progress import show_progress
    from ragtide.stream.replay.batch_joiner import BatchJoiner
    from ragtide.stream.replay.loop import replay
    from ragtide.stream.replay.runs import COMPLETED, Runs
    from ragtide.stream.telemetry.logs import configure

    configure(settings.telemetry)
    if by_batch:
        settings = gather_traces(settings, registry.load(settings.evaluators))
        source = BatchJoiner(source, settings.worker.batch_records, settings.worker.batch_bytes)
    database = Database(settings.clickhouse)
    sink = ClickHouseSink(database)
    runner = asyncio.Runner()
    try:
        runner.get_loop()  # before anything is claimed: Ctrl-C inside its making would leave half a loop
        sink.check()
        made = assemble(
            settings,
            None,
            run_id=run_id,
            timely=False,
            interval=interval,
            event_bounds=event_bounds,
            database=database,
            by_batch=by_batch,
        )
        runs = Runs(database)
        with _interrupt_on_sigterm():
            run = runs.claim(run_id, source.description, source.identity, made.plan, settings)
            rows = settings.worker.block_rows
            try:
                with show_progress(run_id, resumed=run.traces if run.state != COMPLETED else 0) as report:
                    completed = runner.run(
                        replay(
                            source, made.pipeline, sink, runs, run, block_rows=rows, report=report, on_stored=on_stored
                        )
                    )
                made.resources.finish()
                return completed
            finally:  # what was spent before an error counts too
                for line in made.judge_usage():
                    say(line, err=True)
                made.resources.close()
    except KeyboardInterrupt:
        say(f"run {run_id}: stopped; the same command continues it", err=True)
        raise
    finally:
        runner.close()
        sink.close()


def _file_source(settings: "Settings", file: Path) -> "ReplaySource":
    from ragtide.stream.replay.file import FileSource

    return FileSource(
        file,
        batch_records=settings.worker.batch_records,
        batch_bytes=settings.worker.batch_bytes,
        max_line_bytes=settings.ingest.max_bytes,
    )


def _offset_source(settings: "Settings", ranges: Sequence[str]) -> "ReplaySource":
    from ragtide.stream.replay.offsets import OffsetRange, OffsetSource

    wanted = [OffsetRange.parse(text) for text in ranges]
    return OffsetSource(settings.kafka, wanted, batch_records=settings.worker.batch_records)


def _topic_source(
    settings: "Settings", topics: Sequence[str], interval: "Interval | None", late_s: float | None
) -> "ReplaySource":
    from ragtide.stream.replay.topic import TopicSource

    return TopicSource(
        settings.kafka,
        topics or settings.kafka.topics,
        interval,
        ahead_s=settings.ingest.max_future_s,
        late_s=settings.ingest.max_age_s if late_s is None else late_s,
        batch_records=settings.worker.batch_records,
    )
