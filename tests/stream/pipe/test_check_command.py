"""`ragtide check` for scripts: JSON with the same exit status, and little CPU."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from ragtide.stream.cli import main

NOWHERE = {
    "RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:9",
    "RAGTIDE_CLICKHOUSE__URL": "http://127.0.0.1:9",
    "RAGTIDE_TELEMETRY__PORT": "0",
    "RAGTIDE_TELEMETRY__JOBS_PORT": "0",
}
CPU_S = 5.0


def test_json_has_every_check_and_the_same_status() -> None:
    told = CliRunner().invoke(main, ["check", "--json"], env={"RAGTIDE_CONFIG": None, **NOWHERE})
    assert told.exit_code == 1
    found = {one["name"]: one for one in json.loads(told.stdout)}
    assert set(found["clickhouse"]) == {"name", "ok", "message", "unreachable"}
    assert (found["clickhouse"]["ok"], found["clickhouse"]["unreachable"]) == (False, True)
    assert found["kafka.jobs_topic"]["ok"] is None
    assert found["telemetry.port"]["ok"] is True


def test_invalid_settings_are_no_json() -> None:
    told = CliRunner().invoke(main, ["check", "--json"], env={"RAGTIDE_CONFIG": "/no/such.toml"})
    assert (told.exit_code, told.stdout) == (2, "")


def test_a_check_with_default_settings_takes_little_cpu(tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAGTIDE_")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "ragtide.stream", "check"]
    subprocess.run(command, cwd=tmp_path, env=environ | NOWHERE, capture_output=True, timeout=120, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < CPU_S
