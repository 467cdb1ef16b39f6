"""Runs detectors over a population of series, some at a time, so that memory does not grow with their number."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from benchmarks.drift.ours import FLEET, OURS, Said, alone, said
from benchmarks.drift.rivals import RIVALS
from benchmarks.drift.scoring import Judged, judged
from benchmarks.drift.series import Aggregates, Label
from benchmarks.drift.shapes import Calm, Own, Shapes
from benchmarks.drift.slow import SLOW
from benchmarks.drift.unseen import SHAPES, Shaped

POPULATIONS: Mapping[str, Callable[[], Shapes]] = {
    "own": Own,
    "calm": Calm,
    "unseen": partial(Shaped, SHAPES),
    "slow": partial(Shaped, SLOW),
}
DETECTORS = (OURS, FLEET, *RIVALS)
AT_A_TIME = 40  # series: about 250 MB a process
Results = Mapping[str, Sequence[Judged]]


@dataclass(frozen=True)
class Part:
    """Detectors that judge each series by itself on some series; and what ours says of these, if it is asked."""

    results: Results
    said: Sequence[Said]


@dataclass(frozen=True)
class Bench:
    """What is to be run: rivals on the first `rival_series` only, since those that read records take long."""

    shapes: str
    seed: int
    series: int
    detectors: tuple[str, ...]
    rival_series: int

    def parts(self) -> list[list[Label]]:
        """Labels of series of one kind each, as ours takes them."""
        population = POPULATIONS[self.shapes]()
        kinds: dict[str, list[Label]] = defaultdict(list)
        for index in range(self.series):
            label = population.label(self.seed, index)
            kinds[label.kind].append(label)
        return [
            labels[first : first + AT_A_TIME] for labels in kinds.values() for first in range(0, len(labels), AT_A_TIME)
        ]

    def run(self, part: Sequence[Label]) -> Part:
        """Every detector on these series, which are of one kind."""
        population = POPULATIONS[self.shapes]()
        aggregates, found = [], defaultdict[str, list[Judged]](list)
        for label in part:
            series = population.series(self.seed, label)
            aggregates.append(Aggregates.of(series))
            for name in self.detectors if label.index < self.rival_series else ():
                if name in RIVALS and (alarm := RIVALS[name](series)) is not None:
                    found[name].append(judged(label, alarm))
        ours = said(aggregates) if {OURS, FLEET} & set(self.detectors) else []
        if OURS in self.detectors:
            found[OURS] += alone(ours)
        return Part(found, ours if FLEET in self.detectors else [])


def results(bench: Bench, jobs: int) -> Iterator[tuple[int, Part]]:
    """How many series were done, and how the detectors did on them; part by part, as they come."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(bench.run, part): len(part) for part in bench.parts()}
        for done in as_completed(running):
            yield running[done], done.result()
