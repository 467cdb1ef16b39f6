"""How often detectors are wrong, and how fast they are right, on series whose changes are known.

`python -m benchmarks.drift [--shapes unseen|slow|calm]`: 2,000 series, half of which never change and half change once;
14 known-good days, then 7 watched ones in windows of five minutes. Kinds: scores (smooth, with an atom at 1, in five
levels), failures of 1 in 100, latency with a Pareto tail, eight languages. Regimes: clean with a daily season; messy
with weekends, a wandering level and bursts as well; sparse with 2 to 12 records a window instead of 50 to 500. The
rivals have the same series in the same run, the first `--rival-series` of them. With `--shapes unseen`, shapes that
this population lacks; with `slow`, those on which detection was slow. Ends with 1 where ours misses a goal.
"""

import argparse
import sys
import time
from collections import defaultdict

from rich.console import Console
from rich.progress import Progress

from benchmarks.drift.bench import DETECTORS, POPULATIONS, Bench, results
from benchmarks.drift.ours import FLEET, OURS, Said, together
from benchmarks.drift.report import by_shape, of_fleet, tables, too_many, unfound, unmet
from benchmarks.drift.scoring import Judged

BY_SHAPE = ("unseen", "slow")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--detectors", default=",".join(DETECTORS), help=", ".join(DETECTORS))
    parser.add_argument("--shapes", choices=list(POPULATIONS), default="own")
    parser.add_argument("--rival-series", type=int, default=400, help="rivals see so many of the series")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = parser.parse_args()
    chosen.detectors = tuple(chosen.detectors.split(","))
    if unknown := set(chosen.detectors) - set(DETECTORS):
        parser.error(f"no detector {', '.join(sorted(unknown))}; there are {', '.join(DETECTORS)}")
    return chosen


def main() -> int:
    chosen = options()
    bench = Bench(chosen.shapes, chosen.seed, chosen.series, chosen.detectors, chosen.rival_series)
    found: dict[str, list[Judged]] = defaultdict(list)
    said: list[Said] = []
    began, console = time.monotonic(), Console(stderr=True)
    with Progress(console=console) as bar:
        task = bar.add_task("series", total=chosen.series)
        for done, part in results(bench, chosen.jobs):
            bar.advance(task, done)
            said += part.said
            for name, judged in part.results.items():
                found[name] += judged
    if said:
        found[FLEET] = together(said)
    ordered = {name: found[name] for name in chosen.detectors}
    print(*(by_shape(ordered) if chosen.shapes in BY_SHAPE else tables(ordered)), sep="\n")
    print(f"\n{chosen.series} series, seed {chosen.seed}, {time.monotonic() - began:.0f} s")
    if said:
        print(of_fleet(ordered[FLEET]))
    if OURS not in ordered:
        return 0
    ours = ordered[OURS]
    short = unmet(ours) if chosen.shapes == "own" else too_many(ours)
    short += unfound(ours) if chosen.shapes in BY_SHAPE else []
    print("goals met" if not short else "goals not met: " + "; ".join(short))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
