"""The real Alertmanager as a process, and a webhook receiver behind it that keeps every notification."""

import copy
import json
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import requests
import yaml

from tests.infra.ports import free_ports

EXAMPLE = Path(__file__).parents[2] / "deploy" / "alertmanager" / "ragtide.yml"
PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager") or "prometheus-alertmanager"
AMTOOL = shutil.which("amtool") or "amtool"
_PATIENCE_S = 30


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {_PATIENCE_S} s for {what}"
        time.sleep(0.05)


@dataclass(frozen=True)
class Notification:
    """What a receiver got."""

    receiver: str
    status: str
    group: Mapping[str, str]
    alerts: list[dict[str, Any]]

    def problems(self, status: str) -> set[str]:
        return {one["labels"]["problem_id"] for one in self.alerts if one["status"] == status}


class Receiver:
    """A webhook receiver; the path names the receiver of Alertmanager's settings."""

    def __init__(self) -> None:
        self.notifications: list[Notification] = []
        handler = type("Handler", (_Handler,), {"receiver": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def states(self, problem: str = "") -> list[tuple[str, str]]:
        """Each change of an alert as a receiver heard it: (receiver, status), repeats left out."""
        heard: list[tuple[str, str]] = []
        last: dict[tuple[str, str], str] = {}
        for one in list(self.notifications):
            for alert in one.alerts:
                key = (one.receiver, json.dumps(alert["labels"], sort_keys=True))
                if alert["labels"]["problem_id"] == problem or not problem:
                    if last.get(key) != alert["status"]:
                        heard.append((one.receiver, alert["status"]))
                    last[key] = alert["status"]
        return heard

    def repeats(self) -> list[Notification]:
        """Notifications that told their receiver nothing new."""
        known: dict[tuple[str, str], str] = {}
        found = []
        for one in list(self.notifications):
            told = {(one.receiver, json.dumps(each["labels"], sort_keys=True)): each["status"] for each in one.alerts}
            if all(known.get(key) == status for key, status in told.items()):
                found.append(one)
            known |= told
        return found

    def firing(self) -> set[str]:
        """Problems that people believe to be open."""
        last: dict[str, tuple[str, str]] = {}
        for one in list(self.notifications):
            for alert in one.alerts:
                last[json.dumps(alert["labels"], sort_keys=True)] = (alert["labels"]["problem_id"], alert["status"])
        return {problem for problem, status in last.values() if status == "firing"}


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.receiver.notifications.append(
            Notification(self.path.strip("/"), said["status"], said["groupLabels"], said["alerts"])
        )
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `notifications`."""


def config_for(receiver: Receiver, **route: Any) -> dict[str, Any]:
    """The example of the repository with this receiver, no waiting, and these fields of every route."""
    config: dict[str, Any] = copy.deepcopy(yaml.safe_load(EXAMPLE.read_text()))
    for one in config["receivers"]:
        one["webhook_configs"] = [{"url": f"{receiver.url}/{one['name']}"}]
    _change(config["route"], {"group_wait": "0s", "group_interval": "1s", "repeat_interval": "1h", **route})
    return config


def _change(route: dict[str, Any], fields: Mapping[str, Any]) -> None:
    route.update(fields)
    for below in route.get("routes", ()):
        _change(below, fields)


class Alertmanager:
    """A process on loopback; `kill` and `start` keep its data."""

    def __init__(
        self, folder: Path, config: Mapping[str, Any], *arguments: str, port: int = 0, program: str = PROGRAM
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "alertmanager.yml"
        self._file.write_text(yaml.safe_dump(dict(config)))
        port = port or free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._command = [
            program,
            f"--config.file={self._file}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
            *(arguments or ("--cluster.listen-address=",)),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self._is_ready, "Alertmanager to be ready")

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(_PATIENCE_S)
            self._process = None

    def configure(self, config: Mapping[str, Any]) -> None:
        """Take other settings from the next start on."""
        self._file.write_text(yaml.safe_dump(dict(config)))

    def alerts(self) -> list[dict[str, Any]]:
        """Alerts that it holds, silenced and inhibited ones too."""
        found: list[dict[str, Any]] = requests.get(f"{self.url}/api/v2/alerts", timeout=10).json()
        return found

    def problems(self) -> set[str]:
        return {one["labels"]["problem_id"] for one in self.alerts()}

    def silence(self, until: str, **labels: str) -> str:
        """Set a silence by these labels; return its id."""
        body = {
            "matchers": [{"name": name, "value": value, "isRegex": False} for name, value in labels.items()],
            "startsAt": "2020-01-01T00:00:00Z",
            "endsAt": until,
            "createdBy": "kim",
            "comment": "we know",
        }
        return str(requests.post(f"{self.url}/api/v2/silences", json=body, timeout=10).json()["silenceID"])

    def expire(self, silence: str) -> None:
        requests.delete(f"{self.url}/api/v2/silence/{silence}", timeout=10).raise_for_status()

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "Alertmanager ended at once"
        try:
            return requests.get(f"{self.url}/-/ready", timeout=1).ok
        except requests.RequestException:
            return False


@contextmanager
def running(folder: Path, config: Mapping[str, Any], *arguments: str, program: str = PROGRAM) -> Iterator[Alertmanager]:
    """A started Alertmanager, killed in the end."""
    made = Alertmanager(folder, config, *arguments, program=program)
    try:
        made.start()
        yield made
    finally:
        made.kill()


@contextmanager
def cluster_of_two(
    folder: Path, config: Mapping[str, Any], *, gossip: bool = True
) -> Iterator[tuple[Alertmanager, Alertmanager]]:
    """Two members that gossip what they notified of; without gossip, two that do not know each other."""
    first = free_ports(4)
    quick: tuple[str, ...] = (
        "--cluster.gossip-interval=20ms",
        "--cluster.pushpull-interval=1s",
        "--cluster.settle-timeout=1s",
    )
    quick += ("--cluster.peer-timeout=3s",)  # the second member waits so long for word of the first
    if gossip:
        quick += (f"--cluster.peer=127.0.0.1:{first}", f"--cluster.peer=127.0.0.1:{first + 1}")
    members = [
        Alertmanager(
            folder / str(n), config, f"--cluster.listen-address=127.0.0.1:{first + n}", *quick, port=first + 2 + n
        )
        for n in (0, 1)
    ]
    try:
        for one in members:
            one.start()
        yield members[0], members[1]
    finally:
        for one in members:
            one.kill()
