"""A micro-batch that is too large goes to models in portions: the same outcomes, in a memory that is set."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.checks import CountingEncoder
from ragtide.evaluators.encoder import Encoders
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.errors import DeviceLost
from ragtide.evaluators.models import Models
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.plan import PreparedEvaluator, prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.runtime.memory_chunks import MOST_FAILURES, memory_chunks, prefetch_or_bisect, size_of_row
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Ask, Vectors
from ragtide.evaluators.trace import Chunk, Trace
from tests.evaluators.engine.examples import asked, nearness, ready, trace
from tests.evaluators.engine.test_models import REF, tone

KEYS = st.dictionaries(st.sampled_from("abcdefgh"), st.just(0), max_size=5)


@given(st.lists(KEYS, max_size=12), st.integers(1, 30), st.integers(0, 9))
def test_portions_hold_every_trace_once_and_no_more_than_fits(
    keys: Sequence[Mapping[str, int]], most: int, first: int
) -> None:
    sized = [{key: ord(key) - ord("a") + 1 for key in own} for own in keys]
    given = list(memory_chunks(sized, most, first))
    assert [i for portion in given for i in portion.traces] == list(range(first, first + len(keys)))
    for portion in given:
        own = [key for i in portion.traces for key in sized[i - first]]
        assert list(portion.keys) == list(dict.fromkeys(own)), "each once, in order"
        assert portion.size_bytes == sum(ord(key) - ord("a") + 1 for key in portion.keys)
        assert portion.size_bytes <= most or sum(bool(sized[i - first]) for i in portion.traces) == 1
    for one, other in pairwise(given):
        fresh = {*one.keys, *sized[other.traces.start - first]}
        assert sum(ord(key) - ord("a") + 1 for key in fresh) > most, "the next trace would have fitted"


@given(st.integers(1, 3_000), st.data())
def test_what_a_model_fails_on_is_found_and_all_else_is_at_hand_in_few_calls(size: int, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(0, size - 1), max_size=3))
    had: list[int] = []
    calls = 0

    def fetch(keys: Sequence[int]) -> None:
        nonlocal calls
        calls += 1
        if bad & set(keys):
            raise ValueError
        had.extend(keys)

    prefetch_or_bisect(fetch, range(size), repr)
    assert had == [key for key in range(size) if key not in bad]
    assert calls <= 1 + 2 * len(bad) * size.bit_length()


def test_a_model_that_fails_on_everything_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    failures = 0

    def fetch(keys: Sequence[int]) -> None:
        nonlocal failures
        failures += 1
        raise ValueError("what users wrote")

    prefetch_or_bisect(fetch, range(10_000), lambda error: type(error).__name__)
    assert failures == MOST_FAILURES
    assert [record.getMessage() for record in caplog.records] == [
        "a model failed on 10000 texts at once; retrying in halves: ValueError"
    ]


class Recording(HashingEncoder):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(16)
        self.asked: list[Sequence[str]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return super().encode(texts)


class Asked(HashingModel):
    """Likewise."""

    asked: list[Sequence[Ask]]

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        self.asked.append(list(asks))
        return super().answer(asks)


TRACES = [
    trace(i, f"answer {i}", question=f"question {i}", contexts=(Chunk(id="c", text="the same"), Chunk("d", f"own {i}")))
    for i in range(40)
]
TEXTS_OF_ONE = sum(size_of_row(len(text), 16) for text in ("question 10", "the same", "own 10"))


def _plan(resources: Resources) -> tuple[PreparedEvaluator, ...]:
    registry = {"nearness": nearness, "tone": tone}
    return prepare(registry, EvaluatorSettings(), None, resources.encoder, Models(resources.models)).prepared


def _resources(portion_bytes: int) -> tuple[Resources, Recording, Asked]:
    encoder, model = Recording(), Asked(REF)
    model.asked = []
    return Resources(encoder, 0, {REF: model}, 0, portion_bytes), encoder, model


def test_outcomes_are_the_same_in_portions_and_none_is_larger_than_is_set() -> None:
    whole, encoder, model = _resources(1 << 30)
    expected = run_all(_plan(whole), TRACES, whole.batch())
    assert (len(encoder.asked), len(model.asked)) == (1, 1)
    parted, encoder, model = _resources(2 * 10 * TEXTS_OF_ONE)
    assert run_all(_plan(parted), TRACES, parted.batch()) == expected
    assert 1 < len(encoder.asked) <= 5
    assert all(sum(size_of_row(len(text), 16) for text in texts) <= 10 * TEXTS_OF_ONE for texts in encoder.asked)
    assert sorted({text for texts in encoder.asked for text in texts}) == sorted(
        {t for ts in _texts(TRACES) for t in ts}
    )
    assert parted.largest_portion_bytes <= parted.portion_bytes
    assert sum(map(len, model.asked)) == len(TRACES), "no ask twice"


def test_one_record_is_never_parted() -> None:
    resources, encoder, _ = _resources(1)
    assert run_all(_plan(resources), TRACES[:5], resources.batch()) == run_all(
        _plan(whole := _resources(1 << 30)[0]), TRACES[:5], whole.batch()
    )
    assert encoder.asked == [list(texts) for texts in _texts(TRACES[:5])]
    assert resources.largest_portion_bytes > resources.portion_bytes


def test_groups_of_one_batch_share_what_is_at_hand_as_long_as_it_fits() -> None:
    for most, calls in ((1 << 30, 1), (2 * 41 * TEXTS_OF_ONE, 2)):
        resources, encoder, _ = _resources(most)
        shared = resources.batch()
        for _ in range(2):
            run_all(_plan(resources), TRACES, shared)
        assert len(encoder.asked) == calls


def _texts(traces: Sequence[Trace]) -> list[Sequence[str]]:
    return [[str(one.question), *(str(chunk.text) for chunk in one.contexts or ())] for one in traces]


class Lost:
    """An encoder and a model on a card that is gone."""

    revision, dimension = "lost@1", 16

    def encode(self, texts: Sequence[str]) -> Vectors:
        raise DeviceLost("cuda:0 computes no more in this process")

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        raise DeviceLost("cuda:0 computes no more in this process")

    def count_tokens(self, texts: Sequence[str]) -> int:
        return 0


def _silent(plan: Sequence[PreparedEvaluator]) -> list[PreparedEvaluator]:
    """The same, whose evaluators do not say what they will need: they meet the model as they score."""
    return [replace(one, evaluator=replace(one.evaluator, embeds=None, asks=None)) for one in plan]


@pytest.mark.parametrize("resources", [{"encoder": Lost()}, {"encoder": HashingEncoder(), "models": {REF: Lost()}}])
@pytest.mark.parametrize("silent", [False, True])
def test_a_lost_card_is_no_failed_outcome_but_the_end(resources: dict[str, Any], silent: bool) -> None:
    held = Resources(**{"models": {REF: HashingModel(REF)}, **resources})
    plan = _silent(_plan(held)) if silent else _plan(held)
    traces = [asked(1, "a question", "a chunk")]
    with pytest.raises(DeviceLost, match="cuda:0"):
        run_all(plan, traces, held.batch())


def test_what_an_evaluator_says_in_another_type_costs_the_record_only() -> None:
    broken = replace(nearness, embeds=lambda row, shared, params: [row.question, 5])
    resources = Resources(HashingEncoder())
    plan = prepare({"nearness": broken}, EvaluatorSettings(), None, resources.encoder).prepared
    [[outcome]] = run_all(plan, [asked(1, "a question", "a chunk")], resources.batch())
    said: Outcome | None = outcome
    assert "TypeError" in repr(said)


def test_an_evaluator_with_an_encoder_of_its_own_has_one_call_of_it_and_the_others_one_of_theirs() -> None:
    shared, other = Recording(), HashingEncoder(32)
    counted = CountingEncoder(other)
    own = replace(nearness, id="own", encoder=lambda params: "org/other")
    plan = prepare(
        {"nearness": nearness, "own": own}, EvaluatorSettings(), None, shared, encoders=Encoders({"org/other": counted})
    ).prepared
    resources = Resources(shared, encoders={"org/other": counted})
    by_shared, by_own = run_all(plan, TRACES, resources.batch())
    assert (len(shared.asked), counted.calls) == (1, 1)
    [alone] = run_all(ready(nearness, resources=Resources(other)), TRACES, Resources(other).batch())
    assert by_own == alone != by_shared
    assert run_all(plan, TRACES, resources.batch()) == [by_shared, by_own], "each from what was kept of its own"
    assert (len(shared.asked), counted.calls) == (1, 1)
