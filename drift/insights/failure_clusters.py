"""Find groups of similar questions that fail more often than the rest, and traits that failing answers share.

Groups are clusters of one half of the failing questions; their failure rate is measured on the other half, which took
no part in the clustering. With one half for both, any heap of failures would look like a weak point."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.failing_sample import SampledTrace, TraceSample, example_ids, failing, failure_share
from ragtide.drift.insights.model import Insight, insight
from ragtide.drift.insights.weak_parts import ALPHA, READ, TYPE, WRITE, WeakPart, weak_parts, without
from ragtide.drift.stats import Lift, Share, benjamini_hochberg, fisher_p, lift
from ragtide.drift.text import percent
from ragtide.drift.topics import (
    NO_CLUSTER,
    TOPIC,
    centroid_of,
    cosines_of,
    find_clusters_apart,
    min_cosine_of,
    missing_package,
)

MIN_QUESTIONS = 10  # failing questions to form a group, and questions of the other half to judge it
MIN_ANSWERS = 10  # failing answers with the trait
_MAX_TRAITS = 10
_SEED = 1
_OUTLIER_SHARE = 0.1  # of a group: those furthest out do not count for how far it reaches


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


class FailingGroup(NamedTuple):
    """`part` is of the half that judges, `failing` (worst first) and the `traits` they share are of both halves."""

    part: WeakPart[int]
    failing: Sequence[SampledTrace]
    traits: Sequence[Trait]


@insight(reads=AppData)
def failure_clusters(app: AppData) -> Iterator[Insight]:
    """Find the weakest groups of each environment, without any text; none without the extra `insights`."""
    for sample in [] if missing_package() else app.samples:
        for rank, group in enumerate(failing_groups(sample)[: app.settings.insights_questions], start=1):
            yield _insight(sample, group, rank)


def failing_groups(sample: TraceSample) -> list[FailingGroup]:
    """Find groups that fail more often than all others, the largest excess first. Raises `Unavailable`."""
    known = [one for one in sample.traces if one.vector_row is not None]
    members: dict[int, list[SampledTrace]] = {}
    for one, group in zip(known, _assign_groups(sample, known), strict=True):
        members.setdefault(group, []).append(one)
    shares = {
        group: failure_share([one for one in traces if _is_holdout(one)]) for group, traces in sorted(members.items())
    }
    whole = Share(sum(share.hits for share in shares.values()), sum(share.n for share in shares.values()))
    tested = [
        (group, share, [without(whole, share)])
        for group, share in shares.items()
        if group != NO_CLUSTER and min(share.n, whole.n - share.n) >= MIN_QUESTIONS
    ]
    found = []
    for part in weak_parts(tested):
        inside = failing(members[part.name])
        outside = [one for group, traces in members.items() if group != part.name for one in traces]
        found.append(FailingGroup(part, inside, shared_traits(inside, outside)))
    return found


def _is_holdout(one: SampledTrace) -> bool:
    """Whether it is in the half that judges."""
    return one.sample_key % 2 == 1


def _assign_groups(sample: TraceSample, known: Sequence[SampledTrace]) -> list[int]:
    """Return the group of each question, `NO_CLUSTER` if it is in none."""
    finding = [one.vector_row for one in known if one.failed_metrics and not _is_holdout(one)]
    if len(finding) < 2 * MIN_QUESTIONS:
        return [NO_CLUSTER] * len(known)
    vectors = sample.vectors[np.array(finding)]
    distinct = vectors[np.sort(np.unique(vectors, axis=0, return_index=True)[1])]
    labels = find_clusters_apart(distinct, MIN_QUESTIONS, _SEED)
    members = [distinct[labels == label] for label in range(labels.max(initial=NO_CLUSTER) + 1)]
    if not members:
        return [NO_CLUSTER] * len(known)
    centroids = [centroid_of(some) for some in members]
    reach = [min_cosine_of(*pair, _OUTLIER_SHARE) for pair in zip(members, centroids, strict=True)]
    rows = np.array([one.vector_row for one in known], np.int64)
    cosines = cosines_of(sample.vectors[rows], np.stack(centroids))
    nearest = np.where(cosines >= reach, cosines, -np.inf)
    found = np.where(np.isfinite(nearest).any(axis=1), nearest.argmax(axis=1), NO_CLUSTER)
    return [int(group) for group in found]


def _insight(sample: TraceSample, group: FailingGroup, rank: int) -> Insight:
    topics = Counter(one.traits[TOPIC] for one in group.failing if TOPIC in one.traits)
    metrics = Counter(metric for one in group.failing for metric in one.failed_metrics)
    topic = topics.most_common(1)[0][0] if topics else ""
    return Insight(
        type=TYPE,
        where=sample.where,
        identity=("group", rank),
        message=(
            f"a group of similar questions{f' (topic {topic})' if topic else ''} "
            f"{group.part.message()}{trait_message(group.traits)}"
        ),
        figures={
            "kind": "group",
            "rank": rank,
            **group.part.figures,
            "failing": len(group.failing),
            "metrics": dict(metrics.most_common()),
            "topic": topic,
            "shared": [trait.figures for trait in group.traits],
        },
        examples=example_ids(group.failing),
        actions=(READ, WRITE),
    )


def shared_traits(failing: Sequence[SampledTrace], others: Sequence[SampledTrace]) -> list[Trait]:
    """Find the traits whose lift is above 1, the largest lower end first; ten at most.

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
    """Describe the first trait, after another sentence; empty if there is none."""
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
    """Find what failing answers of each environment have in common."""
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
