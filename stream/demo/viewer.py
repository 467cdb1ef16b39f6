"""The built-in viewer as a process of the demo: the dashboards of this run, with its faults among the events."""

import socket
import sys
from pathlib import Path

from ragtide.stream.local.broker import HOST
from ragtide.stream.local.processes import Child
from ragtide.stream.local.services import LocalServices

PREFERRED_PORT = 8080


def viewer(services: LocalServices, settings_file: Path, timeline: Path) -> tuple[Child, str]:
    """The process, not started yet, and its address. It reads ClickHouse with the key that changes nothing."""
    listen = f"{HOST}:{free_port(PREFERRED_PORT)}"
    command = ["view", "--config", str(settings_file), "--listen", listen, "--timeline", str(timeline)]
    reader = {
        "RAGTIDE_GRAFANA__DATA_SOURCE_USER": services.clickhouse.user,
        "RAGTIDE_GRAFANA__DATA_SOURCE_PASSWORD": services.reader_key_file.read_text().strip(),
    }
    child = Child(
        "viewer",
        [sys.executable, "-m", "ragtide.stream", *command],
        services.directory / "logs" / "viewer.log",
        services.environment() | reader,
    )
    return child, f"http://{listen}/"


def free_port(preferred: int) -> int:
    """The preferred port of loopback, or any free one if it is taken."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no port of loopback is free")
