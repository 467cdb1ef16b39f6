"""Find groups of similar questions that fail more often than the rest.

Groups are clusters of one half of the failing questions; their failure rate is measured on the other half, which took
no part in the clustering. With one half for both, any heap of failures would look like a weak point."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.failing_sample import SampledTrace, TraceSample, example_ids, failing, failure_share
from ragtide.drift.insights.model import Insight
from ragtide.drift.insights.registry import insight
from ragtide.drift.insights.shared_traits import Trait, shared_traits, trait_message
from ragtide.drift.insights.weak_parts import READ, TYPE, WRITE, WeakPart, weak_parts, without
from ragtide.drift.stats.proportions import Share
from ragtide.drift.topics.cluster_process import find_clusters_apart
from ragtide.drift.topics.clusters import NONE, missing_package
from ragtide.drift.topics.model import SEGMENT as TOPIC
from ragtide.drift.topics.model import centroid_of, cosines_of, min_cosine_of

MIN_QUESTIONS = 10  # failing questions to form a group, and questions of the other half to judge it
_SEED = 1
_OUTLIER_SHARE = 0.1  # of a group: those furthest out do not count for how far it reaches


class FailingGroup(NamedTuple):
    """`part` is of the half that judges, `failing` (worst first) and the `traits` they share are of both halves."""

    part: WeakPart[int]
    failing: Sequence[SampledTrace]
    traits: Sequence[Trait]


@insight(reads=AppData)
def failure_clusters(app: AppData) -> Iterator[Insight]:
    """The weakest groups of each environment, without any text; none if the extra `insights` is not installed."""
    for sample in [] if missing_package() else app.samples:
        for rank, group in enumerate(failing_groups(sample)[: app.settings.insights_questions], start=1):
            yield _insight(sample, group, rank)


def failing_groups(sample: TraceSample) -> list[FailingGroup]:
    """The groups that fail more often than all others, the largest excess first. Raises `Unavailable`."""
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
        if group != NONE and min(share.n, whole.n - share.n) >= MIN_QUESTIONS
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
    """The group of each question, `NONE` if it is in none."""
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
    rows = np.array([one.vector_row for one in known], np.int64)
    cosines = cosines_of(sample.vectors[rows], np.stack(centroids))
    nearest = np.where(cosines >= reach, cosines, -np.inf)
    found = np.where(np.isfinite(nearest).any(axis=1), nearest.argmax(axis=1), NONE)
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
