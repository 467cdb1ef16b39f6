"""Memory of the jobs on many windows, measured in a process of its own."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.sinks.clickhouse.database import Database

pytestmark = pytest.mark.clickhouse
WINDOWS, MINUTES = 200_000, 2000
MOST_MB = 250  # a million windows of 500 series take less than 500

# Peak memory is read from /proc: getrusage counts what the parent held before exec, and this parent may hold torch.
SCRIPT = """
import sys
from datetime import datetime, timedelta
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from tests.drift.world import World

world = World(
    Database(ClickHouseSettings.model_validate_json(sys.stdin.read())),
    start=datetime.fromisoformat(sys.argv[1]),
)
now = world.start + timedelta(minutes=int(sys.argv[2]))
world.progress(int(sys.argv[2]) * 60)
cycle = world.jobs.run_cycle(now)
scan = world.jobs.scan_for_changes(now, lambda: False)
world.jobs.run_insights(now)
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(cycle.verdicts, scan.scan.series, int(peak.split()[1]) / 1024)
"""


def test_rules_detectors_and_insights_stay_small_on_many_windows(database: Database) -> None:
    start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(
        days=2
    )  # retention keeps it
    applications = WINDOWS // MINUTES // 2
    for metric in ("quality.good", "speed.seconds"):
        database.command(
            f"""
            INSERT INTO windows (run_id, size_s, app, environment, evaluator, metric, start, fingerprint, model,
                prompt_version, seen, sampled, applicable, scored, sum, sum_squares, min, max, bins, revision, state,
                closed_at, version)
            SELECT 'live', 60, concat('app', toString(number % {applications})), 'prod',
                '{metric.partition(".")[0]}', '{metric}',
                toDateTime('{start:%Y-%m-%d %H:%M:%S}', 'UTC') + intDiv(number, {applications}) * 60 AS start,
                'f1', 'm1', 'p1', 20, 20, 20, 20, 18, 16.4, 0.5, 1,
                map(90 + cityHash64(number) % 9, 10, 99, 10), 1, 'closed',
                start + 90, number + 1
            FROM numbers({WINDOWS // 2})
            """
        )
    settings = database.settings
    password = settings.password.get_secret_value()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, start.isoformat(), str(MINUTES)],
        input=json.dumps(settings.model_dump(mode="json") | {"password": password}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    verdicts, series, peak_mb = done.stdout.split()
    assert int(verdicts) >= WINDOWS
    assert int(series) == 2 * applications
    assert float(peak_mb) < MOST_MB
