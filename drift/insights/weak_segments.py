"""Find segments that fail more often than the rest, alone and two together.

Two together are stated only if they fail more often than either does without the other."""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import combinations

from ragtide.drift.insights.data import AppData
from ragtide.drift.insights.failing_sample import SampledTrace, TraceSample
from ragtide.drift.insights.model import Insight, insight
from ragtide.drift.insights.weak_parts import TYPE, WeakPart, weak_parts, without
from ragtide.drift.stats import Share
from ragtide.drift.topics import TOPIC

MIN_ANSWERS = 20  # answers of a cell, and of what it is compared with
_MAX_SEGMENTS = 8  # segments that most answers have
_QUESTION_TYPE = "question_type"
_OTHER_INSIGHTS = ({TOPIC}, {_QUESTION_TYPE}, {TOPIC, _QUESTION_TYPE}, {"model"}, {"prompt_version"})

Value = tuple[str, str]  # a segment's name and value
Cell = tuple[Value, ...]  # one value, or one of each of two segments


@insight(reads=AppData)
def weak_segments(app: AppData) -> Iterator[Insight]:
    """Return the weakest single segments and the weakest pairs of each environment."""
    for sample in app.samples:
        found = find_weak_segments(sample.traces)
        for size in (1, 2):
            of_size = [part for part in found if len(part.name) == size]
            yield from (_insight(sample, part) for part in of_size[: app.settings.insights_questions])


def find_weak_segments(traces: Sequence[SampledTrace]) -> list[WeakPart[Cell]]:
    """Return the cells that fail more often than the rest."""
    known = _values(traces)
    asked: Counter[Cell] = Counter()
    failed: Counter[Cell] = Counter()
    for one in traces:
        cells = list(_cells(one, known))
        asked.update(cells)
        if one.failed_metrics:
            failed.update(cells)
    shares = {cell: Share(failed[cell], n) for cell, n in sorted(asked.items())}
    tested = []
    for cell, share in shares.items():
        if not cell or share.n < MIN_ANSWERS or {name for name, _ in cell} in _OTHER_INSIGHTS:
            continue
        rests = [without(shares[cell[:at] + cell[at + 1 :]], share) for at in range(len(cell))]
        if min(rest.n for rest in rests) >= MIN_ANSWERS:
            tested.append((cell, share, rests))
    return weak_parts(tested)


def _values(traces: Sequence[SampledTrace]) -> set[Value]:
    """Return the values that enough answers have, of the segments that most answers have."""
    held = Counter(name for one in traces for name in one.traits)
    names = set(sorted(held, key=lambda name: (-held[name], name))[:_MAX_SEGMENTS])
    counts = Counter(value for one in traces for value in one.traits.items() if value[0] in names)
    return {value for value, n in counts.items() if n >= MIN_ANSWERS}


def _cells(one: SampledTrace, known: Set[Value]) -> Iterator[Cell]:
    """Return the cells that contain the answer: everything, each of its values, and every two of them."""
    values = sorted(known & one.traits.items())
    for size in (0, 1, 2):
        yield from combinations(values, size)


def _insight(sample: TraceSample, part: WeakPart[Cell]) -> Insight:
    single = len(part.name) == 1
    named = " and ".join(f"{name.replace('_', ' ')} {value}" for name, value in part.name)
    return Insight(
        type=TYPE,
        where=sample.where,
        identity=("segment", *(text for value in part.name for text in value)),
        message=f"answers with {named} {part.message('all others' if single else 'with only one of them')}",
        figures={"kind": "segment" if single else "segments", "segments": dict(part.name), **part.figures},
        examples=sample.examples(dict(part.name)),
        actions=(
            f"Compare the examples with good traces without {named}: questions, contexts, language.",
            f"Monitor it separately: with the segment in windows.segments, rules evaluate {named} alone.",
        ),
    )
