"""A bad record passes, a bad deployment stops the worker."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.ingest.records import DeadLetter
from ragtide.stream.worker.dead_letter_limit import DeadLetterLimit, TooManyDeadLetters
from tests.stream.core.rows import record


def feed(limit: DeadLetterLimit, pattern: str, topic: str = "rag.traces") -> None:
    """One record a letter: "x" is a dead one, "y" one for another reason."""
    records = [record(number, topic=topic) for number in range(len(pattern))]
    reasons = {"x": "not_json", "y": "missing_app"}
    marked = [(found, reasons[letter]) for found, letter in zip(records, pattern, strict=True) if letter in reasons]
    limit.check(records, [DeadLetter(found, reason, "decode", f"why {found.offset}") for found, reason in marked])


def test_a_run_stops_at_its_length_and_not_before() -> None:
    limit = DeadLetterLimit(ratio=1.0, run=5)
    feed(limit, "xxxx.xxxx")
    with pytest.raises(ConfigError, match=r"latest 5 records were all dead letters, up to rag.traces/0 offset 0"):
        feed(limit, "x")


def test_a_run_goes_on_over_slices_and_ends_with_a_good_one() -> None:
    limit = DeadLetterLimit(ratio=1.0, run=5)
    feed(limit, "xxx")
    feed(limit, "...")
    feed(limit, "xxxx")
    with pytest.raises(ConfigError):
        feed(limit, "x")


def test_a_share_is_only_judged_over_a_whole_window() -> None:
    limit = DeadLetterLimit(ratio=0.5, run=10_000)
    feed(limit, "xx." * 333)  # two in three, of 999
    with pytest.raises(ConfigError, match=r"\d+ of the latest 1000 records were dead letters.*not_json"):
        feed(limit, "xx")


def test_a_share_at_the_limit_passes_and_old_records_are_forgotten() -> None:
    limit = DeadLetterLimit(ratio=0.5, run=10_000)
    feed(limit, "x." * 500)
    feed(limit, "." * 1000)
    feed(limit, "x." * 500)
    feed(limit, ".")
    feed(limit, "x")
    with pytest.raises(ConfigError):
        feed(limit, "x" * 3)


def test_the_message_has_reasons_by_share_an_example_and_what_to_do() -> None:
    limit = DeadLetterLimit(ratio=1.0, run=8)
    feed(limit, "xxyx")
    with pytest.raises(TooManyDeadLetters) as caught:
        feed(limit, "xxyx")
    said = str(caught.value)
    assert "reasons: not_json 75%, missing_app 25%. Example: rag.traces/0 offset 0: not_json, why 0." in said
    assert "kafka.decoders" in said
    assert "ragtide validate" in said
    assert "To skip the records, take the topic out of kafka.topics" in said


def test_topics_are_counted_on_their_own() -> None:
    limit = DeadLetterLimit(ratio=0.5, run=5)
    for _ in range(600):
        feed(limit, "x..", "foreign")
        feed(limit, "x..")
    feed(limit, "xxxx", "foreign")
    feed(limit, ".")
    feed(limit, "xxxx")
    with pytest.raises(TooManyDeadLetters, match="up to foreign/0"):
        feed(limit, "x", "foreign")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([".", "x", ".x", "..x", "xx."]), st.integers(1, 60) | st.integers(1, 400)).map(
            lambda it: it[0] * it[1]
        ),
        max_size=12,
    ),
    st.sampled_from([0.3, 0.5, 1.0]),
    st.sampled_from([50, 350, 10_000]),
)
def test_it_stops_at_the_record_at_which_counting_all_over_again_would(
    slices: list[str], ratio: float, run: int
) -> None:
    limit = DeadLetterLimit(ratio, run)
    before = ""
    for slice_ in slices:
        stops = _first_stop(before, slice_, ratio, run)
        if stops is not None:
            with pytest.raises(ConfigError, match=rf"up to rag\.traces/0 offset {stops};"):
                feed(limit, slice_)
            return
        feed(limit, slice_)
        before += slice_


def _first_stop(before: str, slice_: str, ratio: float, run: int) -> int | None:
    """Where in the slice the first record has too many dead ones up to it; a slice without any stops nothing."""
    if "x" not in slice_:
        return None
    for place in range(len(slice_)):
        seen = before + slice_[: place + 1]
        too_long = seen[-run:] == "x" * run
        if too_long or (len(seen) >= 1000 and seen[-1000:].count("x") > ratio * 1000):
            return place
    return None
