"""`ragtide demo`."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import FiniteRange

if TYPE_CHECKING:
    from ragtide.stream.demo.run import Input

INPUTS: "tuple[Input, ...]" = ("traces", "otel")
FAULTS = ("wrong_chunks", "invented", "looping", "leaked_email", "slow_expensive")


@click.command()
@click.option("--minutes", type=FiniteRange(min=0, min_open=True), help="End this many minutes after the first score.")
@click.option("--fault", type=click.Choice(FAULTS), help="Fault to inject repeatedly. Default: one after another.")
@click.option("--seed", type=int, help="Random seed of the questions, the order of faults and their times.")
@click.option("--rate", type=FiniteRange(1, 200), default=20.0, show_default=True, help="Traces per second.")
@click.option(
    "--input",
    "input_",
    type=click.Choice(INPUTS),
    default=INPUTS[0],
    show_default=True,
    help="What the application sends: its traces, or OpenTelemetry spans that stage assemble makes traces of.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ragtide-data"),
    show_default=True,
    help="Folder for the data. Each run gets its own subfolder.",
)
def command(
    minutes: float | None, fault: str | None, seed: int | None, rate: float, input_: "Input", data: Path
) -> None:
    """Watch the whole pipeline find an injected regression, with nothing else installed.

    Starts a broker, ClickHouse, a worker for each lane, the jobs and the dashboards (`ragtide view`, at the address
    that it prints) as child processes. A small real RAG application
    answers questions about Python's standard library and sends its traces through the broker. A fault is active from
    30 to 75 seconds after the first score. The screen shows the metrics that fall, the problem that opens, and how it
    resolves; so do the dashboards. Ctrl-C ends everything and prints where the data is.

    The demo has its own settings. It reads no settings file and no RAGTIDE_ variables, but an unknown variable is
    still an error.

    \b
    Faults:
      wrong_chunks    the retriever returns wrong chunks
      invented        the answers contain invented sentences
      looping         the answers repeat themselves
      leaked_email    some answers give away e-mail addresses
      slow_expensive  the answers are slow and expensive
    \b
    Examples:
      ragtide demo
      ragtide demo --fault leaked_email --minutes 3
      ragtide demo --input otel
      ragtide demo --seed 7 --data /tmp/demo | tee demo.log
    """
    from ragtide.stream.settings.environment import from_environment
    from ragtide.stream.settings.loader import Settings

    from_environment(Settings, os.environ)
    from ragtide.stream.console import PlainConsole
    from ragtide.stream.demo.run import DemoOptions, run

    options = DemoOptions(data=data, minutes=minutes, fault=fault, seed=seed, rate=rate, input=input_)
    sys.exit(run(options, PlainConsole()))
