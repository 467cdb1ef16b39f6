"""When the demo raises and resolves problems, by fault, over many seeds; and whether any comes before its fault.

`python -m benchmarks.demo_problems [--seeds 2]`: the demo's traffic, settings and jobs in simulated time, with the real
model and the embedded ClickHouse. Ends with 1 where a problem comes before its fault, a metric of the fault is not
found while it is on, another one is, or one is not resolved before the next fault.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.demo_faults import Bench
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.demo.faults import FAULTS
from ragtide.stream.demo.run import DemoOptions
from ragtide.stream.demo.schedule import HEALTHY_S
from tests.infra.fresh_database import fresh_database
from tests.stream.demo.simulated import Played, play


def as_promised(played: Played) -> bool:
    """Whether exactly the fault's metrics opened once while it was on and resolved after it, as one group."""
    start_s, end_s = played.episode.start_s, played.episode.end_s
    opened, resolved = played.when("opened", "reopened"), played.when("resolved")
    moved = sorted(played.episode.fault.moves)
    return (
        not played.early
        and [metric for metric, _ in opened] == [metric for metric, _ in resolved] == moved
        and all(start_s < at_s < end_s for _, at_s in opened)
        and all(at_s > end_s for _, at_s in resolved)
        and list(played.groups) == [played.episode.fault.moves[0]]
    )


def show(name: str, performances: Sequence[Played]) -> int:
    """One line; how many were not as promised."""
    opened = [at_s - one.episode.start_s for one in performances for _, at_s in one.when("opened")]
    resolved = [at_s - one.episode.end_s for one in performances for _, at_s in one.when("resolved")]
    wrong = [one for one in performances if not as_promised(one)]
    early = sum(bool(one.early) for one in performances)
    print(f"{name:16} {early:6} {_range(opened):>16} {_range(resolved):>16} {len(wrong):6}", flush=True)
    for one in wrong:
        print(
            f"  seed {one.options.seed}, {one.episode.start_s:.0f} to {one.episode.end_s:.0f} s:",
            *one.said,
            sep="\n    ",
        )
    return len(wrong)


def _range(seconds: Sequence[float]) -> str:
    return f"{min(seconds):.0f} to {max(seconds):.0f} s" if seconds else "never"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="demos of each fault")
    rounds = range(parser.parse_args().seeds)
    bench = Bench()
    performances: list[Played] = []
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder) / "clickhouse") as server:
        for first in (len(FAULTS) * number for number in rounds):
            demos = [DemoOptions(Path(folder), fault=fault, seed=seed) for seed, fault in enumerate(FAULTS, first)]
            with fresh_database(server) as database:
                performances += play(bench, database, demos, after_s=HEALTHY_S)
    print(f"{len(rounds)} demos each{'early':>11} {'opened after':>16} {'resolved after':>16} {'wrong':>6}")
    wrong = sum(show(name, performances[number :: len(FAULTS)]) for number, name in enumerate(FAULTS))
    print("\nevery fault is found and resolved, and nothing before it" if not wrong else f"\n{wrong} not as promised")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
