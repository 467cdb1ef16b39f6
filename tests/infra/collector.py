"""A real OpenTelemetry Collector: receiver otlp, exporter kafka. Its own builder makes it from Go modules."""

import copy
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.infra.go_programs import go, kept
from tests.infra.ports import free_ports

VERSION = "0.155.0"  # the builder's and the components'
_STABLE = "1.61.0"  # of the same release: modules that keep their interfaces
_CORE, _CONTRIB = "go.opentelemetry.io/collector", "github.com/open-telemetry/opentelemetry-collector-contrib"
_MANIFEST: dict[str, Any] = {
    "dist": {"module": "ragtide.test/collector", "name": "collector", "version": VERSION, "output_path": "made"},
    "receivers": [{"gomod": f"{_CORE}/receiver/otlpreceiver v{VERSION}"}],
    "exporters": [{"gomod": f"{_CONTRIB}/exporter/kafkaexporter v{VERSION}"}],
    "providers": [{"gomod": f"{_CORE}/confmap/provider/{name}provider v{_STABLE}"} for name in ("env", "file")],
    "conf_resolver": {"default_uri_scheme": "env"},
}
_PATIENCE_S = 30.0
_PAUSE_S = 0.05


def program() -> Path:
    """Build it once in about two and a half minutes of the processor."""
    return kept(f"collector-{VERSION}", _build)


def _build(scratch: Path) -> Path:
    manifest = scratch / "manifest.yaml"
    manifest.write_text(yaml.safe_dump(_MANIFEST))
    go("run", f"{_CORE}/cmd/builder@v{VERSION}", "--config", str(manifest), at=scratch)
    return scratch / "made" / "collector"


def refusal(file: Path) -> str:
    """Why a Collector does not take this file of settings; empty if it does."""
    done = subprocess.run([program(), "validate", "--config", file], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


class Collector:
    """A process on loopback with these settings; the endpoints of receiver otlp and of metrics are free ports."""

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        http = free_ports(3)
        self.url, self._metrics_url = (f"http://127.0.0.1:{port}" for port in (http, http + 2))
        self.grpc_endpoint = f"127.0.0.1:{http + 1}"
        whole: dict[str, Any] = copy.deepcopy(dict(settings))
        for number, protocol in enumerate(("http", "grpc")):
            whole["receivers"]["otlp"]["protocols"][protocol]["endpoint"] = f"127.0.0.1:{http + number}"
        pull = {"exporter": {"prometheus": {"host": "127.0.0.1", "port": http + 2}}}
        whole["service"]["telemetry"] = {"metrics": {"level": "normal", "readers": [{"pull": pull}]}}
        self._file, self._log = folder / "collector.yaml", folder / "collector.log"
        self._file.write_text(yaml.safe_dump(whole))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns when it receives."""
        with self._log.open("wb") as log:
            command = [str(program()), "--config", str(self._file)]
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + _PATIENCE_S
        while "Everything is ready" not in self.log():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(_PAUSE_S)

    def stop(self) -> int:
        """SIGTERM, at which it sends what it holds; its exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(_PATIENCE_S)

    def kill(self) -> None:
        """Kill -9; nothing where it is gone."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(_PATIENCE_S)

    def metric(self, name: str) -> float:
        """The sum of a counter or gauge, by its name without `otelcol_`."""
        text = requests.get(f"{self._metrics_url}/metrics", timeout=10).text
        samples = (one for family in text_string_to_metric_families(text) for one in family.samples)
        # The parser appends _total to counters.
        return sum(one.value for one in samples if one.name.removesuffix("_total") == f"otelcol_{name}")

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
