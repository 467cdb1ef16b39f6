"""`ragwatch demo`."""

import os
import sys
from pathlib import Path

import click

from stream.cli.options import FiniteRange

FAULTS = ("wrong_chunks", "invented", "looping", "leaked_email", "slow_expensive")


@click.command()
@click.option("--minutes", type=FiniteRange(min=0, min_open=True), help="End so long after the first score.")
@click.option(
    "--fault", type=click.Choice(FAULTS), help="What goes wrong, again and again; otherwise one after another."
)
@click.option("--seed", type=int, help="Draws the questions, the order of the faults and when they begin.")
@click.option("--rate", type=FiniteRange(1, 200), default=20.0, show_default=True, help="Traces a second.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("ragwatch-data"),
    show_default=True,
    help="Each run gets a folder of its own in here.",
)
def command(minutes: float | None, fault: str | None, seed: int | None, rate: float, data: Path) -> None:
    """See the whole pipeline find an injected regression, with nothing else installed.

    Starts a broker, ClickHouse, a worker for each lane and the jobs as children of this process. A small real RAG
    application answers questions about Python's standard library and sends its traces through the broker. From 30 to
    75 seconds after the first score something goes wrong with it; the screen shows which metrics fall, the problem
    that opens, and how it is resolved. Ctrl-C ends everything and says where the data is.

    It has settings of its own and reads no others, neither a file nor RAGWATCH_ variables; an unknown one is an error
    all the same.

    \b
    Faults:
      wrong_chunks    the retriever returns wrong chunks
      invented        the answers contain invented sentences
      looping         the answers repeat themselves
      leaked_email    some answers give away e-mail addresses
      slow_expensive  the answers are slow and expensive
    \b
    Examples:
      ragwatch demo
      ragwatch demo --fault leaked_email --minutes 3
      ragwatch demo --seed 7 --data /tmp/demo | tee demo.log
    """
    from stream.configuration.names import from_environment
    from stream.settings import Settings

    from_environment(Settings, os.environ)
    from rich.console import Console

    from stream.demo.run import DemoOptions, run

    sys.exit(run(DemoOptions(data=data, minutes=minutes, fault=fault, seed=seed, rate=rate), Console()))
