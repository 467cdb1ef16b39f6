"""Questions of one meaning that fail more often than the rest, and what their failures share.

Groups are clusters of one half of the failing questions; how often they fail is told of the other half, in which nobody
looked for them. Had both been the same, any heap of failures would look like a weak point.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from drift.compare.difference import adjusted
from drift.insights.answered import Answered, Sample
from drift.insights.shared_traits import Trait, shared
from drift.insights.shares import Interval, Share, difference, more_often, wilson
from drift.topics.apart import clusters_of
from drift.topics.clusters import NONE
from drift.topics.model import centroid_of, cosines_of, least_cosine_of

LEAST = 10  # failing questions of one meaning that are a group, and questions by which it is judged
_SEED = 1
_LEFT_OUT = 0.1  # of a group: those furthest out do not say how far it reaches
_CHANCE = 0.05


@dataclass(frozen=True, slots=True)
class FailingGroup:
    """`share` is of the group's questions, `rest` of all others, both of the half that judges."""

    share: Share
    rest: Share
    interval: Interval  # of the share
    more: Interval  # share less rest
    p: float  # adjusted for all groups that were looked at
    failing: Sequence[Answered]  # of both halves, those that failed in most metrics first
    traits: Sequence[Trait]  # what is more common among them than elsewhere


def failing_groups(sample: Sample) -> list[FailingGroup]:
    """Those that fail more often for sure, the greatest difference (its lower end) first. Raises `Unavailable`."""
    known = [one for one in sample.answered if one.row is not None]
    group_of = _placed(sample, known)
    judging = [(one, group) for one, group in zip(known, group_of, strict=True) if _judges(one)]
    groups = sorted({group for _, group in judging if group != NONE})
    counted = [(_share(judging, group, True), _share(judging, group, False)) for group in groups]
    pairs = [(group, *pair) for group, pair in zip(groups, counted, strict=True) if min(pair[0].n, pair[1].n) >= LEAST]
    chances = adjusted([more_often(here, there) for _, here, there in pairs])
    found = []
    for (group, here, there), p in zip(pairs, chances, strict=True):
        more = difference(here, there)
        if p > _CHANCE or more.low <= 0:
            continue
        inside = [one for one, own in zip(known, group_of, strict=True) if own == group and one.failed]
        outside = [one for one, own in zip(known, group_of, strict=True) if own != group]
        inside.sort(key=lambda one: (-len(one.failed), one.lot))
        found.append(FailingGroup(here, there, wilson(here), more, p, inside, shared(inside, outside)))
    return sorted(found, key=lambda group: -group.more.low)


def _judges(one: Answered) -> bool:
    """Half of the questions, by lot."""
    return one.lot % 2 == 1


def _placed(sample: Sample, known: Sequence[Answered]) -> list[int]:
    """The group of each question, -1: of none."""
    rows = np.array([one.row for one in known], np.int64)
    finding = [one.row for one in known if one.failed and not _judges(one)]
    if len(finding) < 2 * LEAST:
        return [NONE] * len(known)
    vectors = sample.vectors[np.array(finding)]
    distinct = vectors[np.sort(np.unique(vectors, axis=0, return_index=True)[1])]
    labels = clusters_of(distinct, LEAST, _SEED)
    members = [distinct[labels == label] for label in range(labels.max(initial=NONE) + 1)]
    if not members:
        return [NONE] * len(known)
    centroids = [centroid_of(some) for some in members]
    reach = [least_cosine_of(*pair, _LEFT_OUT) for pair in zip(members, centroids, strict=True)]
    cosines = cosines_of(sample.vectors[rows], np.stack(centroids))
    nearest = np.where(cosines >= reach, cosines, -np.inf)
    found = np.where(np.isfinite(nearest).any(axis=1), nearest.argmax(axis=1), NONE)
    return [int(group) for group in found]


def _share(judging: Sequence[tuple[Answered, int]], group: int, within: bool) -> Share:
    counts = Counter(bool(one.failed) for one, own in judging if (own == group) == within)
    return Share(counts[True], counts.total())
