"""Find what failing answers have in common: values of traits that are more common among them than elsewhere."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.failing_sample import SampledTrace, failure_share
from ragtide.drift.insights.model import Insight
from ragtide.drift.insights.registry import insight
from ragtide.drift.insights.weak_parts import ALPHA, TYPE
from ragtide.drift.stats.means import benjamini_hochberg
from ragtide.drift.stats.proportions import Lift, Share, fisher_p, lift
from ragtide.drift.text import percent

MIN_ANSWERS = 10  # failing answers with the trait
_MAX_TRAITS = 10


class Trait(NamedTuple):
    """A value that is `lift` times as common among failing answers as among the others."""

    name: str
    value: str
    failing: Share
    others: Share
    lift: Lift
    p: float  # adjusted for all traits that were tested

    @property
    def figures(self) -> dict[str, Any]:
        """Both shares, their ratio and p."""
        return {**self._asdict(), "lift": self.lift.value, "lift_interval": (self.lift.low, self.lift.high)}


def shared_traits(failing: Sequence[SampledTrace], others: Sequence[SampledTrace]) -> list[Trait]:
    """The traits whose lift is above 1, the largest lower end first; ten at most.

    An answer whose trait is not known (no question stored, no topic yet) counts on neither side.
    """
    tested = []
    for name in sorted({name for one in failing for name in one.traits}):
        here, there = _trait_values(failing, name), _trait_values(others, name)
        tested += [
            (name, value, Share(hits, here.total()), Share(there[value], there.total()))
            for value, hits in sorted(here.items())
            if there and hits >= MIN_ANSWERS
        ]
    adjusted = benjamini_hochberg([fisher_p(here, there) for _, _, here, there in tested])
    traits = [
        Trait(name, value, here, there, lift(here, there), p)
        for (name, value, here, there), p in zip(tested, adjusted, strict=True)
    ]
    found = [trait for trait in traits if trait.p <= ALPHA and trait.lift.low > 1]
    return sorted(found, key=lambda trait: (-trait.lift.low, trait.name, trait.value))[:_MAX_TRAITS]


def trait_message(traits: Sequence[Trait]) -> str:
    """A sentence on the first of them, after another one; empty if there is none."""
    if not traits:
        return ""
    trait = traits[0]
    return (
        f". Among failures, {trait.name.replace('_', ' ')} {trait.value} is {trait.lift.value:.1f} times "
        f"(95 % interval {trait.lift.low:.1f} to {trait.lift.high:.1f}) as common as elsewhere: "
        f"{percent(trait.failing.value)} against {percent(trait.others.value)}"
    )


def _trait_values(answers: Sequence[SampledTrace], name: str) -> Counter[str]:
    return Counter(one.traits[name] for one in answers if name in one.traits)


@insight(reads=AppData)
def failures(app: AppData) -> Iterator[Insight]:
    """One insight for each environment in which failing answers have something in common."""
    for sample in app.samples:
        passing = [one for one in sample.traces if not one.failed_metrics]
        traits = shared_traits([one for one in sample.traces if one.failed_metrics], passing)
        if not traits:
            continue
        failed = failure_share(sample.traces)
        yield Insight(
            type=TYPE,
            where=sample.where,
            identity=("failures",),
            message=f"{failed.hits:,} of {failed.n:,} answers failed{trait_message(traits)}",
            figures={
                "kind": "failures",
                "asked": failed.n,
                "failed": failed.hits,
                "shared": [trait.figures for trait in traits],
            },
            examples=sample.examples({traits[0].name: traits[0].value}),
            actions=(
                "Compare the examples with good traces that lack what they share: a setting, a source or a prompt.",
            ),
        )
