"""Topics that fail more often than the rest, alone and by the kind of question. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from ragtide.drift.insights.failing_sample import SampledTrace
from ragtide.drift.stats.means import benjamini_hochberg
from ragtide.drift.stats.proportions import Interval, Share, difference, fisher_p, wilson
from ragtide.drift.topics.model import SEGMENT

MIN_QUESTIONS = 20  # questions of a cell, and beside it
_ALPHA = 0.05


class WeakTopic(NamedTuple):
    """A topic, or one kind of question about it (`question_type` not empty)."""

    topic: str
    question_type: str
    share: Share
    rest: Share  # of all other questions that have a topic
    interval: Interval  # of the share
    excess: Interval  # share less rest
    p: float  # adjusted for all cells that were looked at
    examples: Sequence[str]


def weak_topics(answered: Sequence[SampledTrace]) -> list[WeakTopic]:
    """Those that fail more often for sure, the greatest difference (its lower end) first."""
    known = [one for one in answered if SEGMENT in one.traits]
    cells: dict[tuple[str, str], list[SampledTrace]] = {}
    for one in known:
        topic, kind = one.traits[SEGMENT], one.traits.get("question_type", "")
        cells.setdefault((topic, ""), []).append(one)
        if kind:
            cells.setdefault((topic, kind), []).append(one)
    everything = Share(sum(bool(one.failed_metrics) for one in known), len(known)) if known else Share(0, 1)
    tried = []
    for cell, inside in sorted(cells.items()):
        here = Share(sum(bool(one.failed_metrics) for one in inside), len(inside))
        there = Share(everything.hits - here.hits, everything.n - here.n)
        if min(here.n, there.n) >= MIN_QUESTIONS:
            tried.append((cell, here, there))
    chances = benjamini_hochberg([fisher_p(here, there) for _, here, there in tried])
    found = [
        WeakTopic(*cell, here, there, wilson(here), difference(here, there), p, _worst(cells[cell]))
        for (cell, here, there), p in zip(tried, chances, strict=True)
    ]
    sure = [one for one in found if one.p <= _ALPHA and one.excess.low > 0]
    return sorted(sure, key=lambda one: (-one.excess.low, one.topic, one.question_type))


def _worst(answered: Sequence[SampledTrace]) -> list[str]:
    failing = sorted(
        (one for one in answered if one.failed_metrics), key=lambda one: (-len(one.failed_metrics), one.sample_key)
    )
    return [one.trace_id for one in failing[:10]]
