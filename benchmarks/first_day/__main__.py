"""Problems per fault, false alarms and time to detection on a team's first day, with default settings.

`python -m benchmarks.first_day [--seed 1]`: no Kafka; the real evaluators of lane fast, the embedded ClickHouse and the
jobs in simulated time; scores of lane model are drawn. Half an hour without faults follows. Ends with 1 where a fault
has more problems, or more of them announced, than it should; where it is found late or not at all, a problem has no
fault, or a metric that found no fault is an insight.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.first_day.applications import APPLICATIONS
from benchmarks.first_day.faults import FAULTS
from benchmarks.first_day.simulate import Plan, simulate
from ragtide.drift.problems.model import Problem
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.infra.fresh_database import fresh_database

MOST_PROBLEMS, MOST_S = 1.5, 180.0  # a fault


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--before", type=int, default=20, help="minutes before the faults")
    parser.add_argument("--after", type=int, default=30, help="minutes after the faults")
    options = parser.parse_args()
    plan = Plan(APPLICATIONS, FAULTS, seed=options.seed, before_min=options.before, after_min=options.after)
    began = time.process_time()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedClickHouse(Path(folder) / "clickhouse") as server,
        fresh_database(server) as database,
    ):
        result = simulate(database, plan)
    print(f"{'fault':18} {'problems':>8} {'symptoms':>8} {'announced':>9} {'found after':>12}  parents")
    problems, announced, late = 0, 0, 0
    for fault in FAULTS:
        parents = [one for one in result.parents(fault.name) if (one.opened_at or result.onset) >= result.onset]
        symptoms = sum(len(result.groups.symptoms_of(one)) for one in parents)
        found_s = result.detected_s(fault)
        late += found_s is None or found_s > MOST_S
        problems += len(parents)
        announced += result.announced[fault.name]
        after = "never" if found_s is None else f"{found_s:.0f} s"
        sent = result.announced[fault.name]
        print(f"{fault.name:18} {len(parents):8} {symptoms:8} {sent:9} {after:>12}  {_names(parents)}", flush=True)
    false = result.false_alarms(FAULTS)
    for one in false:
        print(f"without a fault: {one.app} {one.environment} {one.type}: {one.description}")
    for insight in result.constant:
        print(f"insight: {insight}")
    per_fault = problems / len(FAULTS)
    print(f"\n{result.traces:,} traces, {time.process_time() - began:.0f} s of CPU besides ClickHouse")
    announced_per_fault = announced / len(FAULTS)
    print(
        f"{per_fault:.2f} problems a fault, {announced_per_fault:.2f} announced, {len(false)} without one, "
        f"{late} found late or never, {len(result.constant)} insights of constant metrics"
    )
    too_many = max(per_fault, announced_per_fault) > MOST_PROBLEMS
    return 1 if too_many or false or late or result.constant else 0


def _names(problems: Sequence[Problem]) -> str:
    return ", ".join(f"{one.type} {one.metric} {one.segment_value}".rstrip() for one in problems)


if __name__ == "__main__":
    sys.exit(main())
