"""The embedded server as a process: it loses nothing, and says what stands in its way."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.row_identity import identity
from ragtide.sinks.sample import block
from ragtide.sinks.settings import RetentionSettings
from tests.infra.ports import listening
from tests.sinks.table_rows import rows_in_table

pytestmark = pytest.mark.clickhouse


def test_listens_on_loopback_only(clickhouse_server: EmbeddedClickHouse) -> None:
    assert clickhouse_server.pid is not None
    assert listening(clickhouse_server.pid) == {("127.0.0.1", clickhouse_server.port)}


def test_the_key_is_the_owners_alone(tmp_path: Path) -> None:
    with EmbeddedClickHouse(tmp_path / "one") as one, EmbeddedClickHouse(tmp_path / "two") as two:
        assert stat.S_IMODE((tmp_path / "one" / "key").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o700
        assert one.settings.password != two.settings.password
        key, port = one.settings.password, one.port
        one.stop()
        one.start()
        assert (one.settings.password, one.port) == (key, port)


def test_a_disk_that_is_gone_is_not_acknowledged(tmp_path: Path) -> None:
    """Nothing can be written where inserts lie: the client is told to try again, and later it works."""
    with EmbeddedClickHouse(tmp_path) as server:
        database = Database(server.settings)
        migrate(database, RetentionSettings())
        rows = block(traces=5).traces
        (tmp_path / "incoming").rename(tmp_path / "away")
        with pytest.raises(Transient, match="CANNOT_WRITE"):
            database.insert("traces", rows)
        (tmp_path / "away").rename(tmp_path / "incoming")
        database.insert("traces", rows)
        assert database.rows("SELECT count() AS n FROM traces FINAL") == [{"n": 5}]
        database.close()


def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    server = EmbeddedClickHouse(tmp_path)
    server.start()
    database = Database(server.settings)
    migrate(database, RetentionSettings())
    rows = block(traces=2_000)
    acknowledged = 0
    for start in range(0, 2_000, 100):
        database.insert("traces", rows.traces[start : start + 100])
        acknowledged += 100
        if start in (500, 1_500):
            server.kill()
            assert server.pid is None
            server.start()
    server.kill()
    server.start()
    assert {identity(row) for row in rows_in_table(database, "traces")} == {identity(row) for row in rows.traces}
    assert acknowledged == 2_000
    assert not list((tmp_path / "incoming").iterdir())
    database.close()
    server.stop()


def test_stops_at_sigterm_after_the_statements_under_way(tmp_path: Path) -> None:
    server = EmbeddedClickHouse(tmp_path)
    server.start()
    database = Database(server.settings)
    database.create()
    database.command("CREATE TABLE t (n UInt8) ENGINE = MergeTree ORDER BY n")
    writing = threading.Thread(
        target=database.command, args=("INSERT INTO t SELECT sleepEachRow(0.2) FROM numbers(10)",)
    )
    writing.start()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if database.rows("SELECT count() AS n FROM system.processes WHERE query LIKE 'INSERT%sleep%'")[0]["n"]:
            break
    server.stop()
    writing.join(30)
    server.start()
    assert database.rows("SELECT count() AS n FROM t") == [{"n": 10}]
    database.close()
    server.stop()


def test_dies_with_its_parent(tmp_path: Path) -> None:
    program = f"""
import os, pathlib, signal
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.embedded.bodies import unpack
server = EmbeddedClickHouse(pathlib.Path({str(tmp_path)!r}))
server.start()
print(server.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    orphan = int(done.stdout)
    deadline = time.monotonic() + 30
    while psutil.pid_exists(orphan) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(orphan) or psutil.Process(orphan).status() == psutil.STATUS_ZOMBIE


def test_a_taken_port_and_a_taken_directory_are_said(tmp_path: Path, clickhouse_server: EmbeddedClickHouse) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} on 127.0.0.1 is in use"):
            EmbeddedClickHouse(tmp_path / "a", port).start()
    with EmbeddedClickHouse(tmp_path / "b"), pytest.raises(ConfigError, match="is served by another process"):
        EmbeddedClickHouse(tmp_path / "b").start()


def test_another_process_finds_the_server_by_its_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ragtide local"):
        _ = EmbeddedClickHouse(tmp_path).settings
    with EmbeddedClickHouse(tmp_path) as server:
        assert EmbeddedClickHouse(tmp_path).settings == server.settings


def test_the_second_start_of_one_object_is_a_mistake(clickhouse_server: EmbeddedClickHouse) -> None:
    with pytest.raises(RuntimeError):
        clickhouse_server.start()


def test_an_unusable_directory_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "ragtide.sinks.clickhouse.embedded", str(tmp_path / "file"), "0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot use ")
    with pytest.raises(ConfigError, match="must not have"):
        EmbeddedClickHouse(tmp_path / "a{1,2}").start()


def test_runs_in_the_foreground_until_sigterm(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ragtide.sinks.clickhouse.embedded", str(tmp_path), "0"],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        text=True,
    )
    assert process.stderr is not None
    assert "listening on 127.0.0.1:" in process.stderr.readline()
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said.count("\n")) == (0, 1)
    assert not (tmp_path / "port").exists()
