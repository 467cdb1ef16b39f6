"""Which groups of questions have another share than before, and what they are called. Pure."""

import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from drift.detectors import watching
from drift.detectors.series import Integers
from drift.questions.clusters import Groups
from drift.questions.comparing import Compared
from drift.questions.memory import Memory
from drift.topics.model import OTHER

_SURE = 3.0  # standard errors
_LEAST = 0.02  # of the questions
_MOST = 3


class Moved(NamedTuple):
    """A group whose share went from `before` to `now`."""

    name: str
    before: float
    now: float


def moved(memory: Memory, found: Compared) -> list[Moved]:
    """The group that is in alarm, then others by how far they moved for sure; three at most."""
    groups = memory.reference.groups
    new, old = (groups.of(lot.vectors) if len(lot.at) else np.empty(0, np.int64) for lot in (found.new, found.old))
    names = [name_of(group, new, found.new.topics, groups) for group in range(groups.none + 2)]
    told = _in_alarm(memory)
    shares = {} if told is None else {told[0]: told[1:]}
    if len(new):
        sizes = [np.bincount(some, minlength=groups.none + 1) / len(some) for some in (new, old)]
        now, before = sizes
        error = np.sqrt((now * (1 - now) + before * (1 - before)) / len(new))
        for group in np.argsort(-np.abs(now - before), kind="stable").tolist():
            if abs(now[group] - before[group]) >= max(_SURE * error[group], _LEAST):
                shares.setdefault(group, (float(before[group]), float(now[group])))
    return [Moved(names[group], *share) for group, share in shares.items()][:_MOST]


def _in_alarm(memory: Memory) -> tuple[int, float, float] | None:
    """Its number, its share before and since the alarm's onset."""
    if not memory.alarm:
        return None
    reading = watching.read(memory.reference.baseline, memory.state)
    return int(reading.channel[0]), float(reading.expected[0]), float(reading.observed[0])


def name_of(group: int, of: Integers, topics: tuple[str, ...], groups: Groups) -> str:
    """By the topic that most of its new questions have, where topics are known; else by number."""
    if group > groups.none:
        return "groups that were rare"
    if group == groups.none:
        return "questions unlike all before"
    known = Counter(topics[place] for place in np.flatnonzero(of == group).tolist() if topics[place])
    name, most = known.most_common(1)[0] if known else ("", 0)
    told = name not in ("", OTHER) and most > math.floor(known.total() / 2)
    return f"questions about {name}" if told else f"questions of group {group + 1}"
