"""What failing answers have in common that others have not. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from drift.compare.difference import adjusted
from drift.insights.answered import Answered
from drift.insights.shares import Lift, Share, lift, more_often

LEAST = 10  # failing answers with the trait
_CHANCE = 0.05
_MOST = 10


class Trait(NamedTuple):
    """A value that is more common among failing answers: `lift` times as common as among the others."""

    name: str
    value: str
    failing: Share
    others: Share
    lift: Lift
    p: float  # adjusted for all traits that were looked at


def shared(failing: Sequence[Answered], others: Sequence[Answered]) -> list[Trait]:
    """The traits whose lift is above 1 for sure, the greatest lower end first; ten at most.

    Where a trait was not known of an answer (no question stored, no topic yet), it is of neither.
    """
    tried = []
    for name in sorted({name for one in failing for name in one.traits}):
        here, there = _values(failing, name), _values(others, name)
        if not there:
            continue
        for value, hits in sorted(here.items()):
            if hits >= LEAST:
                shares = Share(hits, here.total()), Share(there[value], there.total())
                tried.append((name, value, *shares, more_often(*shares)))
    chances = adjusted([one[-1] for one in tried])
    found = [
        Trait(name, value, here, there, lift(here, there), p)
        for (name, value, here, there, _), p in zip(tried, chances, strict=True)
    ]
    sure = [trait for trait in found if trait.p <= _CHANCE and trait.lift.low > 1]
    return sorted(sure, key=lambda trait: (-trait.lift.low, trait.name, trait.value))[:_MOST]


def _values(answered: Sequence[Answered], name: str) -> Counter[str]:
    return Counter(one.traits[name] for one in answered if name in one.traits)
