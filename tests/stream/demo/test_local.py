import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from evaluators.errors import ConfigError
from sinks.settings import RetentionSettings
from stream.local import services
from stream.local.broker import EmbeddedBroker
from stream.local.services import LocalServices
from tests.infra.ports import listening

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse]
RAGWATCH = [sys.executable, "-c", "import sys; from stream.cli import main; sys.exit(main())"]


def start_local(data: Path, *more: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*RAGWATCH, "local", "--data", str(data), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAGWATCH_")},
    )


def said_until_ready(local: "subprocess.Popen[str]") -> dict[str, str]:
    """The variables that it prints."""
    assert local.stdout is not None
    found = {}
    for line in local.stdout:
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name.startswith("RAGWATCH_"):
            found[name] = value
        if "SELECT count() FROM traces" in line:
            return found
    raise AssertionError(f"it ended: {local.communicate()}")


def test_it_serves_until_sigterm_and_the_printed_request_works(tmp_path: Path) -> None:
    local = start_local(tmp_path / "data", "--broker-port", "0", "--clickhouse-port", "0")
    try:
        found = said_until_ready(local)
        url = f"{found['RAGWATCH_CLICKHOUSE__URL']}/?database=ragwatch&default_format=JSONEachRow"
        key = (tmp_path / "data" / "clickhouse" / "key").read_text()
        request = urllib.request.Request(url, b"SELECT count() AS n FROM traces", {"X-ClickHouse-Key": key})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert json.load(answer) == {"n": 0}
        host, _, port = found["RAGWATCH_KAFKA__BOOTSTRAP_SERVERS"].partition(":")
        with socket.create_connection((host, int(port)), timeout=5):
            pass
        assert key not in str(found)
    finally:
        local.send_signal(signal.SIGTERM)
        _, error = local.communicate(timeout=30)
    assert (local.returncode, error) == (0, "")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, int(port)), timeout=5)


def test_the_broker_listens_on_loopback_only(broker: EmbeddedBroker) -> None:
    assert broker.pid is not None
    assert listening(broker.pid) == {("127.0.0.1", broker.port)}


def test_ctrl_c_ends_it_and_everything_it_started(tmp_path: Path) -> None:
    local = start_local(tmp_path, "--broker-port", "0", "--clickhouse-port", "0")
    found = said_until_ready(local)
    local.send_signal(signal.SIGINT)
    local.communicate(timeout=30)
    assert local.returncode == 0
    for address in (found["RAGWATCH_KAFKA__BOOTSTRAP_SERVERS"], found["RAGWATCH_CLICKHOUSE__URL"].split("//")[1]):
        host, _, port = address.partition(":")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((host, int(port)), timeout=5)


def test_killed_it_leaves_nothing_running(tmp_path: Path) -> None:
    local = start_local(tmp_path, "--broker-port", "0", "--clickhouse-port", "0")
    found = said_until_ready(local)
    local.kill()
    local.communicate()
    deadline = time.monotonic() + 20
    for address in (found["RAGWATCH_KAFKA__BOOTSTRAP_SERVERS"], found["RAGWATCH_CLICKHOUSE__URL"].split("//")[1]):
        host, _, port = address.partition(":")
        while True:
            assert time.monotonic() < deadline, f"{address} still listens"
            try:
                socket.create_connection((host, int(port)), timeout=5).close()
            except OSError:
                break
            time.sleep(0.05)


@pytest.mark.parametrize("option", ["--broker-port", "--clickhouse-port"])
def test_a_port_in_use_is_named_with_what_to_do(tmp_path: Path, option: str) -> None:
    other = {"--broker-port": "--clickhouse-port", "--clickhouse-port": "--broker-port"}[option]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        local = start_local(tmp_path, option, port, other, "0")
        _, error = local.communicate(timeout=60)
    assert local.returncode == 2
    assert port in error
    assert "in use" in error
    assert "Traceback" not in error


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot write to"):
        LocalServices(tmp_path / "file", RetentionSettings()).start()


def test_what_is_not_installed_is_named_with_how_to_install_it() -> None:
    with pytest.raises(ConfigError, match=r"no_such_module \(for ClickHouse\).*pip install 'ragwatch\[local\]'"):
        services.require({"json": "nothing", "no_such_module": "ClickHouse"})


def test_children_get_these_services_and_no_other_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGWATCH_CLICKHOUSE__URL", "https://production.example.org")
    monkeypatch.setenv("RAGWATCH_TYPO", "1")
    with LocalServices(tmp_path, RetentionSettings()) as running:
        environment = running.environment()
        assert running.ended() is None
    ours = {name: value for name, value in environment.items() if name.startswith("RAGWATCH_")}
    assert ours == {
        "RAGWATCH_KAFKA__BOOTSTRAP_SERVERS": running.bootstrap,
        "RAGWATCH_CLICKHOUSE__URL": running.clickhouse.url,
        "RAGWATCH_CLICKHOUSE__USER": "default",
        "RAGWATCH_CLICKHOUSE__DATABASE": "ragwatch",
        "RAGWATCH_CLICKHOUSE__PASSWORD": (tmp_path / "clickhouse" / "key").read_text(),
    }
