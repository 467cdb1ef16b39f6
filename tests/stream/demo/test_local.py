import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.cli import main
from ragtide.stream.local import services
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.local.services import LocalServices
from tests.infra.ports import listening

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse]
RAGTIDE = [sys.executable, "-c", "import sys; from ragtide.stream.cli import main; sys.exit(main())"]


def start_local(data: Path, *more: str, alone: bool = False) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*RAGTIDE, "local", *(["clickhouse"] if alone else []), "--data", str(data), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")},
    )


def said_until_ready(local: "subprocess.Popen[str]") -> dict[str, str]:
    """The variables that it prints."""
    assert local.stdout is not None
    found = {}
    for line in local.stdout:
        name, _, value = line.strip().removeprefix("export ").partition("=")
        if name.startswith("RAGTIDE_"):
            found[name] = value
        if "SELECT count() FROM traces" in line:
            return found
    raise AssertionError(f"it ended: {local.communicate()}")


def test_it_serves_until_sigterm_and_the_printed_request_works(tmp_path: Path) -> None:
    local = start_local(tmp_path / "data", "--broker-port", "0", "--clickhouse-port", "0")
    try:
        found = said_until_ready(local)
        url = f"{found['RAGTIDE_CLICKHOUSE__URL']}/?database=ragtide&default_format=JSONEachRow"
        key = (tmp_path / "data" / "clickhouse" / "reader-key").read_text()
        request = urllib.request.Request(url, b"SELECT count() AS n FROM traces", {"X-ClickHouse-Key": key})
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert json.load(answer) == {"n": 0}
        host, _, port = found["RAGTIDE_KAFKA__BOOTSTRAP_SERVERS"].partition(":")
        with socket.create_connection((host, int(port)), timeout=5):
            pass
        assert key not in str(found)
    finally:
        local.send_signal(signal.SIGTERM)
        _, error = local.communicate(timeout=30)
    assert (local.returncode, error) == (0, "")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, int(port)), timeout=5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_clickhouse_alone_serves_commands_that_have_brokers_of_their_own(
    tmp_path: Path, number: signal.Signals
) -> None:
    local = start_local(tmp_path / "data", "--port", "0", alone=True)
    key_file = tmp_path / "data" / "clickhouse" / "key"
    try:
        found = said_until_ready(local)
        assert set(found) == {f"RAGTIDE_CLICKHOUSE__{name}" for name in ("URL", "USER", "DATABASE", "PASSWORD")}, (
            "nothing of Kafka"
        )
        assert found.pop("RAGTIDE_CLICKHOUSE__PASSWORD") == f'"$(cat {key_file})"'
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
        own = {"RAGTIDE_CLICKHOUSE__PASSWORD": key_file.read_text()}
        command = [*RAGTIDE, "migrate"]
        done = subprocess.run(command, env=environment | found | own, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "ragtide: nothing to do, the tables are up to date\n"), done.stderr
        children = psutil.Process(local.pid).children(recursive=True)
        assert [child for child in children if "tansu" in " ".join(child.cmdline())] == []
    finally:
        local.send_signal(number)
        _, error = local.communicate(timeout=30)
    assert (local.returncode, error) == (0, "")
    assert psutil.wait_procs(children, timeout=10)[1] == []


def test_options_before_clickhouse_are_refused(tmp_path: Path) -> None:
    told = CliRunner().invoke(main, ["local", "--data", str(tmp_path), "clickhouse"])
    assert told.exit_code == 2
    assert "put the options after `clickhouse`" in told.output


def test_the_broker_listens_on_loopback_only(broker: EmbeddedBroker) -> None:
    assert broker.pid is not None
    assert listening(broker.pid) == {("127.0.0.1", broker.port)}


def test_ctrl_c_ends_it_and_everything_it_started(tmp_path: Path) -> None:
    local = start_local(tmp_path, "--broker-port", "0", "--clickhouse-port", "0")
    found = said_until_ready(local)
    local.send_signal(signal.SIGINT)
    local.communicate(timeout=30)
    assert local.returncode == 0
    for address in (found["RAGTIDE_KAFKA__BOOTSTRAP_SERVERS"], found["RAGTIDE_CLICKHOUSE__URL"].split("//")[1]):
        host, _, port = address.partition(":")
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((host, int(port)), timeout=5)


def test_killed_it_leaves_nothing_running(tmp_path: Path) -> None:
    local = start_local(tmp_path, "--broker-port", "0", "--clickhouse-port", "0")
    found = said_until_ready(local)
    local.kill()
    local.communicate()
    deadline = time.monotonic() + 20
    for address in (found["RAGTIDE_KAFKA__BOOTSTRAP_SERVERS"], found["RAGTIDE_CLICKHOUSE__URL"].split("//")[1]):
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
    with pytest.raises(ConfigError, match=r"no_such_module \(for ClickHouse\).*pip install 'ragtide\[local\]'"):
        services.require({"json": "nothing", "no_such_module": "ClickHouse"})


def test_children_get_these_services_and_no_other_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__URL", "https://production.example.org")
    monkeypatch.setenv("RAGTIDE_TYPO", "1")
    with LocalServices(tmp_path, RetentionSettings()) as running:
        environment = running.environment()
        assert running.ended() is None
    ours = {name: value for name, value in environment.items() if name.startswith("RAGTIDE_")}
    assert ours == {
        "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": running.bootstrap,
        "RAGTIDE_CLICKHOUSE__URL": running.clickhouse.url,
        "RAGTIDE_CLICKHOUSE__USER": "default",
        "RAGTIDE_CLICKHOUSE__DATABASE": "ragtide",
        "RAGTIDE_CLICKHOUSE__PASSWORD": (tmp_path / "clickhouse" / "key").read_text(),
    }
