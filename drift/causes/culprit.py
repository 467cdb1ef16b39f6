"""The group that a move comes from, if one does: more than its share of the traffic, beyond chance. Pure."""

from collections.abc import Iterable, Sequence

import numpy as np

from drift.causes import permutation, sampling
from drift.causes.decomposition import Contribution, contributions, move_of
from drift.causes.permutation import labels
from drift.causes.splits import Split, with_traffic

ALPHA = 0.02
LEAST_SHARE = 0.2  # of the move: a group that explains less is no answer
LEAST_TRAFFIC = 0.01  # of the records, before or after
LEAST_RECORDS = 20
LEAST_TIMES = 50  # a short stretch has as many places as there are times: with fewer none can be surprising
_INTENSITY = 1.5  # a record of the group adds so many times as much to the move as one of the rest


def culprit(splits: Sequence[Split], seed: int) -> Contribution | None:
    """Of all groups of the dimensions the one that explains most beyond its share of the traffic; None where none does.

    The splits are of the same records and times.
    """
    moved = [(split, move) for split in with_traffic(splits) if split.values and (move := move_of(split)) and move.size]
    if not moved or len(moved[0][0].after) < LEAST_TIMES:
        return None
    permuted = labels(moved[0][0].after, seed)
    by_times = permutation.p_values([one for one, _ in moved], [move.size for _, move in moved], permuted)
    tried = sum(len(split.values) for split, _ in moved)
    found = []
    for (split, move), p_by_times in zip(moved, by_times, strict=True):
        p = np.maximum(p_by_times, sampling.p_values(split, move.size, tried))
        enough = split.n[:, :-1].sum(axis=0) >= LEAST_RECORDS
        groups = zip(contributions(split, move), p, enough, strict=True)
        found += [one._replace(p=float(own)) for one, own, is_enough in groups if is_enough]
    return max(_explaining(found), key=lambda one: one.share - one.traffic, default=None)


def _explaining(found: Iterable[Contribution]) -> list[Contribution]:
    return [
        one
        for one in found
        if one.p <= ALPHA
        and one.share >= LEAST_SHARE
        and max(one.traffic_before, one.traffic_after) >= LEAST_TRAFFIC
        and one.share * (1 - one.traffic) >= _INTENSITY * (1 - one.share) * one.traffic
    ]
