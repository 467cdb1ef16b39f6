"""`ragtide worker`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import LANES, config_option, settings_from, split

if TYPE_CHECKING:
    from ragtide.stream.worker.process import Part

PARTS: "tuple[Part, ...]" = (*LANES, "assemble")


@click.command()
@click.option(
    "--lane",
    "lanes",
    multiple=True,
    required=True,
    metavar="LANE[,LANE]",
    help="Lanes to run: fast (rules; also writes traces and dead letters), model (embeddings, "
    "classifiers), judge (language models); or assemble, the stage that makes traces of OpenTelemetry spans.",
)
@config_option
def command(lanes: tuple[str, ...], config: Path | None) -> None:
    """Evaluate traces from Kafka until stopped. Each lane runs in its own child process if there are several.

    Each lane is a consumer group: start up to as many workers of a lane as the topic has partitions. SIGTERM and
    Ctrl-C drain: records in process are stored and committed first, for at most worker.drain_s. The next worker reads
    fetched records that were not begun.

    \b
    Examples:
      ragtide worker --lane fast
      ragtide worker --lane fast,model --config production.toml
      ragtide worker --lane assemble
      RAGTIDE_KAFKA__BOOTSTRAP_SERVERS=kafka-1:9092,kafka-2:9092 ragtide worker --lane model
    """
    wanted = split(lanes)
    check_names("--lane", wanted, PARTS)
    loaded = settings_from(config)
    from ragtide.stream.worker.process import run

    sys.exit(run(loaded.settings, [part for part in PARTS if part in wanted]))
