"""Records of an hour: never more than the limit, spread over the hour, by application and evaluator."""

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ragtide.evaluators.judge.calls import THROTTLED, Asker, TraceCalls
from ragtide.stream.judge.limits import LeftOut
from ragtide.stream.judge.record_limits import HOUR_S, RecordLimits


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def admitted(limits: RecordLimits, asker: Asker) -> bool:
    try:
        limits.admit(asker)
    except LeftOut:
        return False
    return True


def test_a_record_beyond_the_limit_is_throttled() -> None:
    limits = RecordLimits(Clock())
    limits.admit(asker(1))
    with pytest.raises(LeftOut) as caught:
        limits.admit(asker(1))
    assert caught.value.outcome == THROTTLED


def asker(per_hour: int | None, app: str = "shop", evaluator: str = "e") -> Asker:
    return Asker(evaluator, TraceCalls(app), per_hour)


@given(st.integers(1, 400), st.lists(st.floats(0, 4_000), max_size=40), st.integers(1, 100))
@hypothesis_settings(deadline=None)
def test_no_hour_has_more_records_than_the_limit(per_hour: int, pauses_s: list[float], at_once: int) -> None:
    clock, sent_s = Clock(), list[float]()
    limits = RecordLimits(clock)
    for pause_s in pauses_s:
        clock.now_s += pause_s
        sent_s += [clock.now_s for _ in range(at_once) if admitted(limits, asker(per_hour))]
    assert all(sum(start <= one < start + HOUR_S for one in sent_s) <= per_hour for start in sent_s)


@pytest.mark.parametrize("per_hour", [1, 2, 6, 7, 100, 3_600])
def test_steady_traffic_gets_nearly_all_of_them_and_all_through_the_hour(per_hour: int) -> None:
    clock, minutes = Clock(), [0] * 240
    limits = RecordLimits(clock)
    for minute in range(len(minutes)):
        clock.now_s = 60.0 * minute
        minutes[minute] = sum(admitted(limits, asker(per_hour)) for _ in range(100))
    later = minutes[60:]
    assert sum(later) >= 3 * per_hour * 5 / 6 - 3
    assert max(later) <= -(-per_hour // 60) + 1, "no hour begins with all of them"


def test_later_calls_about_a_record_pass_and_others_are_not_touched() -> None:
    limits = RecordLimits(Clock())
    first = asker(1)
    assert [admitted(limits, first) for _ in range(3)] == [True] * 3
    refused = asker(1)
    assert [admitted(limits, refused) for _ in range(2)] == [False] * 2
    others = (asker(1, app="docs"), asker(1, evaluator="f"), asker(None))
    assert [admitted(limits, one) for one in others] == [True] * 3
    same_trace = Asker("f", first.trace, 1)
    assert not admitted(limits, same_trace), "each evaluator has records of its own"
