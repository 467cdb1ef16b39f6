"""Resident memory of a worker at rest: lane `fast`, lane `model`, and both as one command, with its two children.

`python -m benchmarks.worker_memory`: real workers on the embedded broker and ClickHouse, every evaluator that can run
here, MiniLM on ONNX Runtime. At rest: at work in its group, topics empty, a few heartbeats later. The goal is for each
process that works on a lane; what the parent of several lanes takes is told beside it.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.local.services import LocalServices
from ragtide.stream.local.topics import create_topics, topics_of
from ragtide.stream.settings.sections import KafkaSettings

GOAL_MB = 300.0
STARTS_WITHIN_S = 120.0
SETTLES_S = 10.0
SETTINGS = """
[telemetry]
port = 0
[evaluators.encoder]
backend = "onnx"
model = "all-MiniLM-L6-v2"
"""


def at_rest_mb(lanes: str, folder: Path, services: LocalServices) -> list[float]:
    """Of the worker's process and of those below it, in MB."""
    settings, log = folder / "ragtide.toml", folder / f"{lanes}.log"
    settings.write_text(SETTINGS)
    command = [sys.executable, "-m", "ragtide.stream", "worker", "--lane", lanes, "--config", str(settings)]
    with log.open("wb") as output:
        worker = subprocess.Popen(command, env=services.environment(), stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while log.read_text().count("at work in group") < len(lanes.split(",")):
            if worker.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the worker of {lanes} is not at work:\n{log.read_text()[-2000:]}")
            time.sleep(0.2)
        time.sleep(SETTLES_S)
        whole = psutil.Process(worker.pid)
        return [one.memory_info().rss / 1e6 for one in (whole, *whole.children(recursive=True))]
    finally:
        worker.terminate()
        worker.wait()


def main() -> int:
    """0 where no process of a lane takes `GOAL_MB` at rest."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    most = 0.0
    with tempfile.TemporaryDirectory() as place, LocalServices(Path(place), RetentionSettings()) as services:
        asyncio.run(create_topics(services.bootstrap, topics_of(KafkaSettings())))
        for lanes in ("fast", "model", "fast,model"):
            parent, *children = at_rest_mb(lanes, Path(place), services)
            most = max(most, *(children or [parent]))
            each = ", ".join(f"{mb:.0f}" for mb in (parent, *children))
            print(f"--lane {lanes:11} {parent + sum(children):4.0f} MB ({each})")
    print(f"most of a process {most:.0f} MB of {GOAL_MB:.0f} MB")
    return 0 if most < GOAL_MB else 1


if __name__ == "__main__":
    sys.exit(main())
