"""The demo's dashboards: an address that is free, and a process that only reads."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ragtide.sinks.settings import ClickHouseSettings
from ragtide.stream.demo.viewer import free_port, viewer


def test_a_port_in_use_is_replaced_by_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        other = free_port(port)
        assert other not in (0, port)
    assert free_port(other) == other


def test_the_viewer_reads_with_the_key_that_changes_nothing(tmp_path: Path) -> None:
    key = tmp_path / "reader-key"
    key.write_text("read-only\n")
    services: Any = SimpleNamespace(
        clickhouse=ClickHouseSettings(user="reader"),
        reader_key_file=key,
        directory=tmp_path,
        environment=lambda: {"RAGTIDE_CLICKHOUSE__URL": "http://127.0.0.1:1"},
    )
    child, address = viewer(services, tmp_path / "ragtide.toml", tmp_path / "timeline.json")
    assert child.environment == {
        "RAGTIDE_CLICKHOUSE__URL": "http://127.0.0.1:1",
        "RAGTIDE_GRAFANA__DATA_SOURCE_USER": "reader",
        "RAGTIDE_GRAFANA__DATA_SOURCE_PASSWORD": "read-only",
    }
    assert address == f"http://{child.command[child.command.index('--listen') + 1]}/"
    assert str(tmp_path / "timeline.json") in child.command
