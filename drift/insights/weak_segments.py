"""Segments that fail more often than the rest, alone and two together. Pure.

Two together are told of only where they fail more often than either does without the other: what one of them explains
alone is no news of both.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations, islice
from typing import NamedTuple

from ragtide.drift.insights.failing_sample import SampledTrace, TraceSample
from ragtide.drift.insights.model import Insight
from ragtide.drift.stats.means import benjamini_hochberg
from ragtide.drift.stats.proportions import Interval, Share, difference, fisher_p_values, wilson
from ragtide.drift.text import percent, scope_label
from ragtide.drift.topics.model import SEGMENT as TOPIC

TYPE = "weak_point"
MIN_ANSWERS = 20  # answers of a cell, and of what it is compared with
_ALPHA = 0.05
_MAX_SEGMENTS = 8  # segments that are looked at: those that most answers have
_EXAMPLES = 10
_QUESTION_TYPE = "question_type"
_OTHER_INSIGHTS = ({TOPIC}, {_QUESTION_TYPE}, {TOPIC, _QUESTION_TYPE}, {"model"}, {"prompt_version"})

Value = tuple[str, str]  # a segment's name and value
Cell = tuple[Value, ...]


class WeakSegment(NamedTuple):
    """One value of a segment, or of two. `rest` is what it is compared with, `more` is by how much it fails more."""

    cell: Cell
    share: Share
    rest: Share
    interval: Interval
    excess: Interval
    p: float  # adjusted for all cells that were looked at


def weak_segments(answered: Sequence[SampledTrace]) -> list[WeakSegment]:
    """Those that fail more often for sure, the greatest difference (its lower end) first."""
    known = _values(answered)
    asked: Counter[Cell] = Counter()
    failed: Counter[Cell] = Counter()
    for one in answered:
        cells = list(_cells(one, known))
        asked.update(cells)
        if one.failed_metrics:
            failed.update(cells)
    of = {cell: Share(failed[cell], n) for cell, n in asked.items()}
    tried: list[tuple[Cell, Share, Sequence[Share]]] = []
    for cell, here in sorted(of.items()):
        if not cell or here.n < MIN_ANSWERS or {name for name, _ in cell} in _OTHER_INSIGHTS:
            continue
        rest = [_without(of[wider], here) for wider in _wider(cell)]
        if min(other.n for other in rest) >= MIN_ANSWERS:
            tried.append((cell, here, rest))
    chances = benjamini_hochberg(_p_values(tried))
    sure = [_weak_segment(*one, p) for one, p in zip(tried, chances, strict=True) if p <= _ALPHA]
    return sorted((one for one in sure if one.excess.low > 0), key=lambda one: (-one.excess.low, one.cell))


def _p_values(tried: Sequence[tuple[Cell, Share, Sequence[Share]]]) -> list[float]:
    """p of each cell: the greatest of what it is compared with."""
    found = iter(fisher_p_values([(here, other) for _, here, rest in tried for other in rest]))
    return [max(islice(found, len(rest))) for _, _, rest in tried]


def _weak_segment(cell: Cell, here: Share, rest: Sequence[Share], p: float) -> WeakSegment:
    """Beside that of the rest which it is least sure to be weaker than."""
    hardest = min(rest, key=lambda other: difference(here, other).low)
    return WeakSegment(cell, here, hardest, wilson(here), difference(here, hardest), p)


def segment_insights(sample: TraceSample, limit: int) -> list[Insight]:
    """At most so many of one segment, and of two."""
    found = weak_segments(sample.traces)
    alone = [one for one in found if len(one.cell) == 1][:limit]
    return [_insight(sample, one) for one in (*alone, *[one for one in found if len(one.cell) == 2][:limit])]


def _values(answered: Sequence[SampledTrace]) -> set[Value]:
    """Those that enough answers have, of the segments that most answers have: of others no cell is large enough."""
    held = Counter(name for one in answered for name in one.traits)
    names = {name for name, _ in sorted(held.items(), key=lambda item: (-item[1], item[0]))[:_MAX_SEGMENTS]}
    counts = Counter(value for one in answered for value in one.traits.items() if value[0] in names)
    return {value for value, n in counts.items() if n >= MIN_ANSWERS}


def _cells(one: SampledTrace, known: Set[Value]) -> Iterator[Cell]:
    """All that the answer is of: everything, each of its values, and every two of them."""
    values = sorted(known & one.traits.items())
    yield ()
    for value in values:
        yield (value,)
    yield from combinations(values, 2)


def _wider(cell: Cell) -> list[Cell]:
    """What holds the cell: everything, or each of the two values."""
    return [cell[:at] + cell[at + 1 :] for at in range(len(cell))]


def _without(wider: Share, here: Share) -> Share:
    return Share(wider.hits - here.hits, wider.n - here.n)


def _insight(sample: TraceSample, one: WeakSegment) -> Insight:
    cell: Mapping[str, str] = dict(one.cell)
    failing = [each for each in sample.traces if each.failed_metrics and cell.items() <= each.traits.items()]
    failing.sort(key=lambda each: (-len(each.failed_metrics), each.sample_key))
    named = " and ".join(f"{name.replace('_', ' ')} {value}" for name, value in one.cell)
    others = "all others" if len(one.cell) == 1 else "either without the other"
    return Insight(
        type=TYPE,
        app=sample.app,
        environment=sample.environment,
        identity=("segment", *(part for value in one.cell for part in value)),
        description=(
            f"{scope_label(sample.app, sample.environment)}: answers of {named} failed {one.share.hits} of "
            f"{one.share.n} times ({percent(one.share.value)}), {others} {one.rest.hits} of {one.rest.n} "
            f"({percent(one.rest.value)}): {one.excess.low * 100:.0f} to {one.excess.high * 100:.0f} points more."
        ),
        attributes={
            "kind": "segment" if len(one.cell) == 1 else "segments",
            "segments": cell,
            "asked": one.share.n,
            "failed": one.share.hits,
            "failed_share": one.share.value,
            "failed_share_interval": list(one.interval),
            "rest_asked": one.rest.n,
            "rest_failed": one.rest.hits,
            "more_than_rest": one.share.value - one.rest.value,
            "more_than_rest_interval": list(one.excess),
            "p": one.p,
        },
        examples=[each.trace_id for each in failing[:_EXAMPLES]],
        actions=(
            f"Compare the example traces with good ones that are not of {named}: questions, contexts, language.",
            f"Watch it by itself: name the segment in windows.segments, so that rules judge {named} alone.",
        ),
    )
