"""A planted interaction is told of, with its counts; two segments of which one explains all are not."""

from collections.abc import Callable

from ragtide.drift.insights.failing_sample import SampledTrace
from ragtide.drift.insights.weak_parts import WeakPart
from ragtide.drift.insights.weak_segments import Cell, find_weak_segments

BOTH = (("language", "fr"), ("tenant", "b"))


def answered(fails: Callable[[int, bool, bool], bool], **more: str) -> list[SampledTrace]:
    """1,200 answers: every third of tenant b, every second in French, of one model."""
    found = []
    for i in range(1_200):
        b, french = i % 3 == 0, i % 2 == 0
        traits = {"tenant": "b" if b else "a", "language": "fr" if french else "en", "model": "m", **more}
        found.append(SampledTrace(f"t{i}", i, ("q.good",) if fails(i, b, french) else (), traits))
    return found


def by_cell(found: list[WeakPart[Cell]]) -> dict[Cell, WeakPart[Cell]]:
    return {one.name: one for one in found}


def test_what_two_segments_do_together_is_told_of_both_and_of_each() -> None:
    """200 of French for tenant b fail half the time, all others every twentieth, odd and even ones."""
    found = by_cell(find_weak_segments(answered(lambda i, b, french: i % 4 == 0 if b and french else i % 40 in (1, 2))))
    assert set(found) == {BOTH, (("language", "fr"),), (("tenant", "b"),)}
    pair = found[BOTH]
    assert pair.share == (100, 200)
    assert pair.rest == (10, 200)  # tenant b without French: 81, 201, ... 1,161
    assert pair.excess.low > 0.3
    assert found[(("tenant", "b"),)].share == (110, 400)
    assert found[(("tenant", "b"),)].rest == (40, 800)


def test_where_one_explains_all_two_are_not_told() -> None:
    found = find_weak_segments(answered(lambda i, b, french: i % 9 == 0 if b else i % 40 in (1, 2)))
    assert [one.name for one in found] == [(("tenant", "b"),)]


def test_where_all_fail_alike_nothing_is_told() -> None:
    assert find_weak_segments(answered(lambda i, b, french: i % 7 == 0)) == []
    assert find_weak_segments([]) == []


def test_what_other_insights_tell_is_left_to_them() -> None:
    def asked(n: int, fails: int, topic: str) -> list[SampledTrace]:
        traits = {"topic": topic, "question_type": topic, "model": topic, "prompt_version": topic}
        return [SampledTrace(f"{topic}{i}", i, ("q.good",) if i < fails else (), traits) for i in range(n)]

    assert find_weak_segments([*asked(100, 90, "bad"), *asked(100, 2, "good")]) == []
