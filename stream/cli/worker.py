"""`ragwatch worker`."""

import sys
from pathlib import Path

import click

from stream.cli.options import config_option, lanes_named, settings_from


@click.command()
@click.option(
    "--lane",
    "lanes",
    multiple=True,
    required=True,
    metavar="LANE[,LANE]",
    help="fast (rules; writes traces and dead letters), model (embeddings, classifiers), judge (language models).",
)
@config_option
def command(lanes: tuple[str, ...], config: Path | None) -> None:
    """Evaluate traces from Kafka until stopped; several lanes run as one child process each.

    Each lane is a consumer group of its own: start as many workers of a lane as the topic has partitions. SIGTERM and
    Ctrl-C drain: what was begun is stored and committed first, for at most worker.drain_s; what was only fetched is
    read again by the next worker.

    \b
    Examples:
      ragwatch worker --lane fast
      ragwatch worker --lane fast,model --config production.toml
      RAGWATCH_KAFKA__BOOTSTRAP_SERVERS=kafka-1:9092,kafka-2:9092 ragwatch worker --lane model
    """
    wanted = lanes_named(lanes)
    loaded = settings_from(config)
    from stream.lanes.worker import run

    sys.exit(run(loaded.settings, wanted))
