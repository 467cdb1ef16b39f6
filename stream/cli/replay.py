"""`ragwatch replay`."""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from stream.cli.options import EventTime, FiniteRange, config_option, settings_from, split
from stream.cli.replay_settings import as_variables, set_option

if TYPE_CHECKING:
    from stream.ingest.records import Record
    from stream.pipeline import Period
    from stream.replay.loop import ReplaySource
    from stream.replay.runs import RunRow
    from stream.settings import Settings


@click.command()
@click.option("--run", "run_id", required=True, metavar="NAME", help="The run to fill; `live` backfills live windows.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Topic to read; default: kafka.topics.")
@click.option("--from", "start", type=EventTime(), help="First event time; default: the topic's beginning.")
@click.option("--to", "end", type=EventTime(), help="Event time to end before; default: what is there now.")
@click.option(
    "--offsets",
    multiple=True,
    metavar="TOPIC:PARTITION:START-END",
    help="A fixed range of offsets, END not included; several, one a partition.",
)
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="Traces as JSON lines, instead of a topic."
)
@click.option("--evaluators", multiple=True, metavar="ID[,ID]", help="Only these; default: every one that can run.")
@click.option(
    "--late",
    "late_s",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    help="How long after its event time a trace may have reached the broker; default: ingest.max_age_s.",
)
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
    late_s: float | None,
    changes: tuple[str, ...],
    config: Path | None,
) -> None:
    """Evaluate a range of a topic, or a file, into run NAME, through the same pipeline as live traffic.

    A run has rows, windows and dead letters of its own and never touches live ones. Stopped or killed, the same
    command goes on where it was; run once more, it leaves the same rows. A name with other settings is refused.

    \b
    Examples:
      ragwatch replay --run monday --from 2026-03-02 --to 2026-03-03
      ragwatch replay --run new-threshold --topic rag.traces --evaluators groundedness,rouge --from 2026-03-02T09:00Z
      ragwatch replay --run stems --offsets rag.traces:0:500-900 --set evaluators.params.rouge.use_stemmer=true
      ragwatch replay --run import --file traces.jsonl
      ragwatch replay --run live --from 2026-03-02T09:00Z --to 2026-03-02T11:00Z   # backfill an outage
    """
    by_time = topics or start or end or late_s is not None
    if file is not None and (by_time or offsets):
        raise click.UsageError("--file is read whole: --topic, --from, --to, --late and --offsets are for topics")
    if offsets and by_time:
        raise click.UsageError("--offsets says it all: --topic, --from, --to and --late are for ranges of time")
    if start is not None and end is not None and start >= end:
        raise click.UsageError("--from must lie before --to")
    check_name(run_id)
    settings = settings_from(config, as_variables(changes)).settings
    if wanted := split(evaluators):
        chosen = settings.evaluators.model_copy(update={"enabled": wanted})
        settings = settings.model_copy(update={"evaluators": chosen})
    period = _period(start, end)
    if file is not None:
        source = _of_file(settings, file)
    elif offsets:
        source = _of_offsets(settings, split(offsets))
    else:
        source = _of_topics(settings, split(topics), period, late_s)
    done = fill(settings, run_id, source, period)
    click.echo(f"run {run_id}: {done.traces:,} traces, {done.dead_letters:,} dead letters, from {source.description}")


def check_name(run_id: str) -> None:
    """Nothing, where a run may be called so; otherwise a usage error."""
    import re

    from sinks.rows import PROBE

    if run_id == PROBE or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", run_id):
        raise click.BadParameter(
            f"{run_id!r}: letters, digits, '.', '_' and '-', at most 64; {PROBE!r} is taken", param_hint="--run"
        )


def _period(start: datetime | None, end: datetime | None) -> "Period | None":
    from stream.pipeline import Period

    if start is None and end is None:
        return None
    return Period(start.timestamp() if start else 0.0, end.timestamp() if end else float("inf"))


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does."""

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


@_ended_by_sigterm()
def fill(
    settings: "Settings",
    run_id: str,
    source: "ReplaySource",
    period: "Period | None" = None,
    settled: "Callable[[Sequence[Record]], None] | None" = None,
) -> "RunRow":
    """Replay `source` into a run, with a bar, and return the run; `settled` as `stream.replay.loop.replay` has it.

    Ctrl-C and SIGTERM end it with a word on how to go on; what was stored stays.
    """
    import asyncio

    from sinks.clickhouse.database import Database
    from sinks.clickhouse.sink import ClickHouseSink
    from stream.assembly import assemble
    from stream.cli.replay_progress import shown
    from stream.replay.loop import replay
    from stream.replay.runs import COMPLETED, Runs
    from stream.telemetry.logs import configure

    configure(settings.telemetry)
    database = Database(settings.clickhouse)
    sink = ClickHouseSink(database)
    runner = asyncio.Runner()
    try:
        runner.get_loop()  # before anything is claimed: Ctrl-C inside its making would leave half a loop
        sink.check()
        made = assemble(settings, None, run_id=run_id, timely=False, period=period, database=database)
        runs = Runs(database)
        run = runs.claim(run_id, source.description, source.identity, made.plan, settings)
        rows = settings.worker.block_rows
        with shown(run_id, resumed=run.traces if run.state != COMPLETED else 0) as tell:
            return runner.run(
                replay(source, made.pipeline, sink, runs, run, block_rows=rows, tell=tell, settled=settled)
            )
    except KeyboardInterrupt:
        click.echo(f"run {run_id}: stopped; the same command goes on where it was", err=True)
        raise
    finally:
        runner.close()
        sink.close()


def _of_file(settings: "Settings", file: Path) -> "ReplaySource":
    from stream.replay.file import FileSource

    return FileSource(
        file,
        batch_records=settings.worker.batch_records,
        batch_bytes=settings.worker.batch_bytes,
        max_line_bytes=settings.ingest.max_bytes,
    )


def _of_offsets(settings: "Settings", ranges: Sequence[str]) -> "ReplaySource":
    from stream.replay.offsets import OffsetRange, OffsetSource

    wanted = [OffsetRange.parsed(text) for text in ranges]
    return OffsetSource(settings.kafka, wanted, batch_records=settings.worker.batch_records)


def _of_topics(
    settings: "Settings", topics: Sequence[str], period: "Period | None", late_s: float | None
) -> "ReplaySource":
    from stream.replay.topic import TopicSource

    return TopicSource(
        settings.kafka,
        topics or settings.kafka.topics,
        period,
        ahead_s=settings.ingest.max_future_s,
        late_s=settings.ingest.max_age_s if late_s is None else late_s,
        batch_records=settings.worker.batch_records,
    )
