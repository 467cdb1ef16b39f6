"""`ragtide local`: the services in the foreground until SIGTERM or Ctrl-C."""

import asyncio
import signal
from pathlib import Path
from shlex import quote

from rich.console import Console

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.local.services import LocalServices
from ragtide.stream.local.topics import create_topics, topics_of
from ragtide.stream.settings.loader import Settings

_LOOK_EVERY_S = 1.0


def serve(data: Path, settings: Settings, console: Console, *, broker_port: int | None, clickhouse_port: int) -> int:
    """Serve; return 0 after Ctrl-C or SIGTERM. Raise ConfigError if something is missing, in use or ended unexpectedly.

    `broker_port` None: ClickHouse alone.
    """
    services = LocalServices(
        data.resolve(), settings.retention, broker_port=broker_port, clickhouse_port=clickhouse_port
    )
    with services:
        asyncio.run(_until_ended(services, settings, console))
    return 0


async def _until_ended(services: LocalServices, settings: Settings, console: Console) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if services.bootstrap:
        await create_topics(services.bootstrap, topics_of(settings.kafka))
    for line in _how_to_connect(services).split("\n"):
        console.print(line, soft_wrap=True)
    while not stop.is_set():
        if ended := services.ended():
            raise ConfigError(f"{ended} ended unexpectedly; see {services.directory}")
        try:
            await asyncio.wait_for(stop.wait(), _LOOK_EVERY_S)
        except TimeoutError:
            continue


def _how_to_connect(services: LocalServices) -> str:
    exports = "\n".join(f"  export {name}={value}" for name, value in services.variables().items())
    key, reader_key = quote(str(services.key_file)), quote(str(services.reader_key_file))
    broker = f"The broker listens on {services.bootstrap}, ClickHouse on {services.clickhouse.url}; Ctrl-C ends both."
    alone = (
        f"ClickHouse listens on {services.clickhouse.url}, its key is in {services.key_file}; Ctrl-C ends it.\n"
        "Name your own brokers in kafka.bootstrap_servers."
    )
    return f"""\
{broker if services.bootstrap else alone}
In another terminal:

{exports}
  export RAGTIDE_CLICKHOUSE__PASSWORD="$(cat {key})"
  ragtide worker --lane fast,model

  curl "{services.clickhouse.url}/?database={services.clickhouse.database}" \\
    -H "X-ClickHouse-Key: $(cat {reader_key})" -d "SELECT count() FROM traces"

Give Grafana and people who only look the key in {reader_key}: it reads and changes nothing.
"""
