"""Find where an application fails more often: groups of similar questions, topics, shared traits.

Groups are clusters of one half of the failing questions; their failure rate is measured on the other half, which took
no part in the clustering. With one half for both, any heap of failures would look like a weak point."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift.insights.failing_sample import SampledTrace, TraceSample
from ragtide.drift.insights.model import Insight
from ragtide.drift.insights.weak_topics import WeakTopic, weak_topics
from ragtide.drift.stats.means import benjamini_hochberg
from ragtide.drift.stats.proportions import Interval, Lift, Share, difference, fisher_p, lift, wilson
from ragtide.drift.text import percent
from ragtide.drift.topics.cluster_process import find_clusters_apart
from ragtide.drift.topics.clusters import NONE, missing_package
from ragtide.drift.topics.model import centroid_of, cosines_of, min_cosine_of

MIN_TRAIT_ANSWERS = 10  # failing answers with the trait
_ALPHA = 0.05
_MAX_TRAITS = 10


class Trait(NamedTuple):
    """A value that is more common among failing answers: `lift` times as common as among the others."""

    name: str
    value: str
    failing: Share
    others: Share
    lift: Lift
    p: float  # adjusted for all traits that were looked at


def shared_traits(failing: Sequence[SampledTrace], others: Sequence[SampledTrace]) -> list[Trait]:
    """The traits whose lift is above 1 for sure, the greatest lower end first; ten at most.

    Where a trait was not known of an answer (no question stored, no topic yet), it is of neither.
    """
    tried = []
    for name in sorted({name for one in failing for name in one.traits}):
        here, there = _trait_values(failing, name), _trait_values(others, name)
        if not there:
            continue
        for value, hits in sorted(here.items()):
            if hits >= MIN_TRAIT_ANSWERS:
                shares = Share(hits, here.total()), Share(there[value], there.total())
                tried.append((name, value, *shares, fisher_p(*shares)))
    chances = benjamini_hochberg([one[-1] for one in tried])
    found = [
        Trait(name, value, here, there, lift(here, there), p)
        for (name, value, here, there, _), p in zip(tried, chances, strict=True)
    ]
    sure = [trait for trait in found if trait.p <= _ALPHA and trait.lift.low > 1]
    return sorted(sure, key=lambda trait: (-trait.lift.low, trait.name, trait.value))[:_MAX_TRAITS]


def _trait_values(answered: Sequence[SampledTrace], name: str) -> Counter[str]:
    return Counter(one.traits[name] for one in answered if name in one.traits)


MIN_QUESTIONS = 10  # failing questions of one meaning that are a group, and questions by which it is judged
_SEED = 1
_OUTLIER_SHARE = 0.1  # of a group: those furthest out do not say how far it reaches


@dataclass(frozen=True, slots=True)
class FailingGroup:
    """`share` is of the group's questions, `rest` of all others, both of the half that judges."""

    share: Share
    rest: Share
    interval: Interval  # of the share
    excess: Interval  # share less rest
    p: float  # adjusted for all groups that were looked at
    failing: Sequence[SampledTrace]  # of both halves, those that failed in most metrics first
    traits: Sequence[Trait]  # what is more common among them than elsewhere


def failing_groups(sample: TraceSample) -> list[FailingGroup]:
    """Those that fail more often for sure, the greatest difference (its lower end) first. Raises `Unavailable`."""
    known = [one for one in sample.traces if one.vector_row is not None]
    group_of = _assign_groups(sample, known)
    holdout = [(one, group) for one, group in zip(known, group_of, strict=True) if _is_holdout(one)]
    groups = sorted({group for _, group in holdout if group != NONE})
    counted = [(_share(holdout, group, True), _share(holdout, group, False)) for group in groups]
    pairs = [
        (group, *pair)
        for group, pair in zip(groups, counted, strict=True)
        if min(pair[0].n, pair[1].n) >= MIN_QUESTIONS
    ]
    chances = benjamini_hochberg([fisher_p(here, there) for _, here, there in pairs])
    found = []
    for (group, here, there), p in zip(pairs, chances, strict=True):
        excess = difference(here, there)
        if p > _ALPHA or excess.low <= 0:
            continue
        inside = [one for one, own in zip(known, group_of, strict=True) if own == group and one.failed_metrics]
        outside = [one for one, own in zip(known, group_of, strict=True) if own != group]
        inside.sort(key=lambda one: (-len(one.failed_metrics), one.sample_key))
        found.append(FailingGroup(here, there, wilson(here), excess, p, inside, shared_traits(inside, outside)))
    return sorted(found, key=lambda group: -group.excess.low)


def _is_holdout(one: SampledTrace) -> bool:
    """Half of the questions, by lot."""
    return one.sample_key % 2 == 1


def _assign_groups(sample: TraceSample, known: Sequence[SampledTrace]) -> list[int]:
    """The group of each question, -1: of none."""
    rows = np.array([one.vector_row for one in known], np.int64)
    finding = [one.vector_row for one in known if one.failed_metrics and not _is_holdout(one)]
    if len(finding) < 2 * MIN_QUESTIONS:
        return [NONE] * len(known)
    vectors = sample.vectors[np.array(finding)]
    distinct = vectors[np.sort(np.unique(vectors, axis=0, return_index=True)[1])]
    labels = find_clusters_apart(distinct, MIN_QUESTIONS, _SEED)
    members = [distinct[labels == label] for label in range(labels.max(initial=NONE) + 1)]
    if not members:
        return [NONE] * len(known)
    centroids = [centroid_of(some) for some in members]
    reach = [min_cosine_of(*pair, _OUTLIER_SHARE) for pair in zip(members, centroids, strict=True)]
    cosines = cosines_of(sample.vectors[rows], np.stack(centroids))
    nearest = np.where(cosines >= reach, cosines, -np.inf)
    found = np.where(np.isfinite(nearest).any(axis=1), nearest.argmax(axis=1), NONE)
    return [int(group) for group in found]


def _share(holdout: Sequence[tuple[SampledTrace, int]], group: int, within: bool) -> Share:
    counts = Counter(bool(one.failed_metrics) for one, own in holdout if (own == group) == within)
    return Share(counts[True], counts.total())


TYPE = "weak_point"
_EXAMPLES = 10
_READ = "Read the example traces: is the answer in the index at all, and is it retrieved?"
_WRITE = "Add or rewrite the documents that should answer them, then replay the examples."
_COMPARE = "Compare the example traces with good ones that lack what they share: a setting, a source or a prompt."


def weak_points(sample: TraceSample, limit: int) -> list[Insight]:
    """At most `most` groups, `most` topics, and one finding on what failures share; each is sure, none has a text."""
    groups = [] if missing_package() else failing_groups(sample)
    topics = weak_topics(sample.traces)
    return [
        *(_group_insight(sample, group, rank) for rank, group in enumerate(groups[:limit], start=1)),
        *(_topic_insight(sample, topic) for topic in topics[:limit]),
        *_failure_insights(sample),
    ]


def _group_insight(sample: TraceSample, group: FailingGroup, rank: int) -> Insight:
    topics = Counter(one.traits["topic"] for one in group.failing if "topic" in one.traits)
    topic = topics.most_common(1)[0][0] if topics else ""
    return Insight(
        type=TYPE,
        app=sample.app,
        environment=sample.environment,
        identity=("group", rank),
        description=(
            f"{sample.label}: questions of one meaning{f' (topic {topic})' if topic else ''} "
            f"{_excess_message(group.share, group.rest, group.excess)}{_trait_message(group.traits)}."
        ),
        attributes={
            "kind": "group",
            "rank": rank,
            **_counts(group.share, group.rest, group.interval, group.excess, group.p),
            "failing": len(group.failing),
            "metrics": _metrics(group.failing),
            "topic": topic,
            "shared": [_trait_attributes(trait) for trait in group.traits],
        },
        examples=[one.trace_id for one in group.failing[:_EXAMPLES]],
        actions=(_READ, _WRITE),
    )


def _topic_insight(sample: TraceSample, found: WeakTopic) -> Insight:
    about = f"questions of topic {found.topic}"
    if found.question_type:
        about = f"{found.question_type.replace('_', ' ')} questions of topic {found.topic}"
    return Insight(
        type=TYPE,
        app=sample.app,
        environment=sample.environment,
        identity=("topic", found.topic, found.question_type),
        description=f"{sample.label}: {about} {_excess_message(found.share, found.rest, found.excess)}.",
        attributes={
            "kind": "topic",
            "topic": found.topic,
            "question_type": found.question_type,
            **_counts(found.share, found.rest, found.interval, found.excess, found.p),
        },
        examples=found.examples,
        actions=(_READ, _WRITE),
    )


def _failure_insights(sample: TraceSample) -> list[Insight]:
    failing = sorted(
        (one for one in sample.traces if one.failed_metrics), key=lambda one: (-len(one.failed_metrics), one.sample_key)
    )
    traits = shared_traits(failing, [one for one in sample.traces if not one.failed_metrics])
    if not traits:
        return []
    first = traits[0]
    having = [one.trace_id for one in failing if one.traits.get(first.name) == first.value]
    return [
        Insight(
            type=TYPE,
            app=sample.app,
            environment=sample.environment,
            identity=("failures",),
            description=(
                f"{sample.label}: {len(failing)} of {len(sample.traces)} answers failed{_trait_message(traits)}."
            ),
            attributes={
                "kind": "failures",
                "asked": len(sample.traces),
                "failed": len(failing),
                "shared": [_trait_attributes(trait) for trait in traits],
            },
            examples=having[:_EXAMPLES],
            actions=(_COMPARE,),
        )
    ]


def _excess_message(share: Share, rest: Share, excess: Interval) -> str:
    return (
        f"failed {share.hits} of {share.n} times ({percent(share.value)}), all others {rest.hits} of {rest.n} "
        f"({percent(rest.value)}): {excess.low * 100:.0f} to {excess.high * 100:.0f} points more"
    )


def _trait_message(traits: Sequence[Trait]) -> str:
    """The first of them; the attributes hold all."""
    if not traits:
        return ""
    trait = traits[0]
    return (
        f"; {percent(trait.failing.value)} of those that failed have {trait.name} {trait.value}, "
        f"{trait.lift.value:.1f} times ({trait.lift.low:.1f} to {trait.lift.high:.1f}) as common as elsewhere"
    )


def _counts(share: Share, rest: Share, interval: Interval, excess: Interval, p: float) -> dict[str, Any]:
    return {
        "asked": share.n,
        "failed": share.hits,
        "failed_share": share.value,
        "failed_share_interval": list(interval),
        "rest_asked": rest.n,
        "rest_failed": rest.hits,
        "more_than_rest": share.value - rest.value,
        "more_than_rest_interval": list(excess),
        "p": p,
    }


def _metrics(failing: Sequence[SampledTrace]) -> Mapping[str, int]:
    return dict(Counter(metric for one in failing for metric in one.failed_metrics).most_common())


def _trait_attributes(trait: Trait) -> dict[str, Any]:
    return {
        "name": trait.name,
        "value": trait.value,
        "failing": list(trait.failing),
        "others": list(trait.others),
        "lift": trait.lift.value,
        "lift_interval": [trait.lift.low, trait.lift.high],
        "p": trait.p,
    }
