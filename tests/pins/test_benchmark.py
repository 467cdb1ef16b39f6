"""Which windows the detectors alarm at on series of `benchmarks.drift`, and how strong the evidence is at its end."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.drift.bench import POPULATIONS
from benchmarks.drift.ours import sequential
from benchmarks.drift.series import Aggregates, Label
from tests.pins.golden import check
from tests.pins.recorded import number

SEED = 4
UNSEEN = (*range(1, 120, 12), 96)  # the last one has false alarms


@pytest.mark.parametrize("shapes", ["own", "unseen"])
def test_alarms(shapes: str) -> None:
    check("benchmark", f"{shapes}, seed {SEED}", sorted(_alarms(shapes)))


def _alarms(shapes: str) -> Iterator[str]:
    """Begin and end of each alarm, in watched windows; series of one kind are judged together, as jobs do.

    Of each kind the first series that changes in each regime, and one that is well; of unseen shapes a few.
    """
    population = POPULATIONS[shapes]()
    if shapes == "unseen":
        chosen = [population.label(SEED, index) for index in UNSEEN]
    else:
        first: dict[tuple[str, ...], Label] = {}
        for label in (population.label(SEED, index) for index in range(200)):
            fate = ("well",) if label.change is None else ("changed", label.regime)
            first.setdefault((label.kind, *fate), label)
        chosen = list(first.values())
    kinds: dict[str, list[Label]] = defaultdict(list)
    for label in chosen:
        kinds[label.kind].append(label)
    for labels in kinds.values():
        watched = sequential([Aggregates.of(population.series(SEED, label)) for label in labels])
        for label, alarm, evidence in zip(labels, watched.alarm, watched.evidence, strict=True):
            edges = np.flatnonzero(np.diff(alarm.astype(int), prepend=0, append=0)).reshape(-1, 2)
            spans = " ".join(f"{first}-{end}" for first, end in edges.tolist()) or "none"
            what = f"{label.kind} {label.shape} {label.regime} {label.change or 'well'}"
            yield f"{label.index:03d} {what} | alarms {spans} | evidence {number(float(evidence[-1]))}"
