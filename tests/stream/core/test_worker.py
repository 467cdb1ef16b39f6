"""`ragtide worker` as a user starts it: child processes, exit statuses, telemetry, ClickHouse."""

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.infra.ports import free_ports, listening
from tests.stream.core.traffic import ROOT, Broker, committed, eventually, make_topics, send, trace

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse]  # the embedded broker makes topics up when asked
QUICK = """
session_timeout_s = 6.0
heartbeat_s = 1.0
rebalance_timeout_s = 8.0
"""


@contextmanager
def ragtide(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / "log").open("wb") as log:
        command = [sys.executable, "-c", "from ragtide.stream.cli import main; main()", *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield process
    finally:
        for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []:
            child.kill()
        process.kill()
        process.wait()


def configured(directory: Path, broker: Broker, database: "Database", topic: str, more: str = "") -> Path:
    clickhouse = database.settings
    file = directory / "ragtide.toml"
    file.write_text(
        f"""
[kafka]
bootstrap_servers = "{broker.bootstrap}"
topics = ["{topic}"]
dead_letter_topic = "{topic}.dead"
group_prefix = "{topic}"
{QUICK}
[clickhouse]
url = "{clickhouse.url}"
user = "{clickhouse.user}"
password = "{clickhouse.password.get_secret_value()}"
database = "{clickhouse.database}"
[evaluators]
enabled = ["inputs"]
[worker]
heartbeat_s = 1.0
{more}
"""
    )
    return file


def told(directory: Path) -> str:
    return (directory / "log").read_text()[-6000:]


def get(port: int, path: str) -> str | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return None


def commits(broker: Broker, group: str, topic: str, count: int) -> bool:
    return sum(committed(broker, group, topic, 2).values()) == count


def metrics_tell(port: int, line: str) -> bool:
    return line in (get(port, "/metrics") or "")


def test_two_lanes_are_two_processes_that_stop_together(broker: Broker, database: "Database", tmp_path: Path) -> None:
    topic = "rag.two-lanes"
    make_topics(broker, {topic: 2, f"{topic}.dead": 1})
    send(broker, topic, [(None, trace(f"t{n}")) for n in range(100)])
    first = free_ports(2)
    file = configured(tmp_path, broker, database, topic, f"[telemetry]\nport = {first}")
    with ragtide(tmp_path, "worker", "--lane", "fast,model", "--config", str(file)) as process:
        for lane in ("fast", "model"):
            done = partial(commits, broker, f"{topic}-{lane}", topic, 100)
            eventually(done, 60, lambda: told(tmp_path))
        for number, lane in enumerate(("fast", "model")):
            assert get(first + number, "/ready") == "ok\n"
            assert get(first + number, "/live") == "ok\n"
            metrics = get(first + number, "/metrics") or ""
            assert f'ragtide_records_total{{lane="{lane}"}} 100.0' in metrics
            worked_off = f'ragtide_lag_records{{lane="{lane}",partition="1",topic="{topic}"}} 0.0'
            eventually(partial(metrics_tell, first + number, worked_off), 20, lambda: told(tmp_path))
        lanes = [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]
        found = sorted(sorted(listening(child.pid)) for child in lanes)
        assert found == [[("127.0.0.1", first)], [("127.0.0.1", first + 1)]]  # and nowhere Faust's own web server
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0, told(tmp_path)
        assert not any(child.is_running() for child in lanes)
    (row,) = database.rows("SELECT uniqExact(trace_id) AS traces FROM traces FINAL")
    assert row["traces"] == 100
    progress = database.rows("SELECT lane, partition, lag FROM progress FINAL ORDER BY lane, partition")
    assert [(p["lane"], p["partition"], p["lag"]) for p in progress] == [
        ("fast", 0, 0),
        ("fast", 1, 0),
        ("model", 0, 0),
        ("model", 1, 0),
    ]


def test_a_lane_that_ends_by_itself_takes_the_others_along(
    broker: Broker, database: "Database", tmp_path: Path
) -> None:
    topic = "rag.one-dies"
    make_topics(broker, {topic: 1, f"{topic}.dead": 1})
    file = configured(tmp_path, broker, database, topic, f"[telemetry]\nport = {free_ports(2)}")
    with ragtide(tmp_path, "worker", "--lane", "fast,model", "--config", str(file)) as process:
        eventually(lambda: told(tmp_path).count("consumes as group") == 2, 60, lambda: told(tmp_path))
        lanes = [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]
        lanes[0].kill()
        assert process.wait(40) == 1, told(tmp_path)
        assert not lanes[1].is_running()
        assert "ended unexpectedly" in told(tmp_path)


def test_lanes_stop_when_their_parent_is_killed(broker: Broker, database: "Database", tmp_path: Path) -> None:
    topic = "rag.orphans"
    make_topics(broker, {topic: 1, f"{topic}.dead": 1})
    file = configured(tmp_path, broker, database, topic, f"[telemetry]\nport = {free_ports(2)}")
    with ragtide(tmp_path, "worker", "--lane", "fast,model", "--config", str(file)) as process:
        eventually(lambda: told(tmp_path).count("consumes as group") == 2, 60, lambda: told(tmp_path))
        lanes = psutil.Process(process.pid).children()
        os.kill(process.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(lanes, timeout=30)
        assert not alive, told(tmp_path)


def test_a_telemetry_port_in_use_is_a_clear_error(broker: Broker, database: "Database", tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        file = configured(tmp_path, broker, database, "rag.traces", f"[telemetry]\nport = {port}")
        with ragtide(tmp_path, "worker", "--lane", "fast", "--config", str(file)) as process:
            assert process.wait(40) == 2, told(tmp_path)
    assert f"telemetry.port: cannot listen on 127.0.0.1:{port}" in told(tmp_path)


@pytest.mark.kafka
def test_a_worker_waits_for_a_topic_that_is_made_later(kafka: Broker, database: "Database", tmp_path: Path) -> None:
    topic = "rag.later"
    file = configured(tmp_path, kafka, database, topic, "[telemetry]\nport = 0")
    with ragtide(tmp_path, "worker", "--lane", "fast", "--config", str(file)) as process:
        eventually(
            lambda: f"have no topic {topic}: `ragtide topics create` makes it" in told(tmp_path),
            40,
            lambda: told(tmp_path),
        )
        make_topics(kafka, {topic: 1, f"{topic}.dead": 1})
        send(kafka, topic, [(None, trace("t1"))])
        eventually(lambda: committed(kafka, f"{topic}-fast", topic, 1) == {0: 1}, 60, lambda: told(tmp_path))
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0, told(tmp_path)


def test_a_stop_while_waiting_for_brokers_is_a_stop(database: "Database", tmp_path: Path) -> None:
    class Nobody:
        bootstrap = "127.0.0.1:1"

    file = configured(tmp_path, Nobody(), database, "rag.traces", "[telemetry]\nport = 0")
    with ragtide(tmp_path, "worker", "--lane", "model", "--config", str(file)) as process:
        eventually(lambda: "no broker answers at 127.0.0.1:1" in told(tmp_path), 40, lambda: told(tmp_path))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0, told(tmp_path)


@pytest.mark.parametrize("lane", ["fast", pytest.param("model", marks=pytest.mark.onnx)])
def test_at_rest_a_worker_is_small(broker: Broker, database: "Database", tmp_path: Path, lane: str) -> None:
    topic = f"rag.rest-{lane}"
    make_topics(broker, {topic: 1, f"{topic}.dead": 1})
    more = '[telemetry]\nport = 0\n[evaluators.encoder]\nbackend = "onnx"'
    file = configured(tmp_path, broker, database, topic, more)
    text = file.read_text().replace('enabled = ["inputs"]', "")
    file.write_text(text)
    with ragtide(tmp_path, "worker", "--lane", lane, "--config", str(file)) as process:
        eventually(lambda: "consumes as group" in told(tmp_path), 60, lambda: told(tmp_path))
        assert psutil.Process(process.pid).memory_info().rss < 300 << 20
