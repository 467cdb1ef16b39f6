"""What each record passes besides evaluators takes time that grows as the record does: the door, masking, rows."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ragtide.evaluators.checks.dense_traces import dense_traces
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.text.sentences import split
from ragtide.evaluators.trace import Chunk, Trace
from ragtide.stream.ingest.adjustments import Adjustments
from ragtide.stream.ingest.canonical_json import decode_canonical
from ragtide.stream.ingest.masked_names import NameMasking
from ragtide.stream.ingest.masking import CHARACTERS_PER_TEXT, MAX_CHARACTERS, WITHHELD, Masking, by_kind
from ragtide.stream.ingest.stored_trace import rest_of
from tests.evaluators.builtin.scoring import trace
from tests.infra.growth import growth_fault

SIZE = 20_000
SHAPES = dict(dense_traces())
MASKING = Masking(EvaluatorSettings(), by_kind)
NAMES = NameMasking(MASKING, users=True)


def strictly(of: Trace) -> Callable[[], Any]:
    written = msgspec.json.encode(of)
    return lambda: decode_canonical(written, Adjustments())


def leniently(of: Trace) -> Callable[[], Any]:
    written = msgspec.json.encode(of)[:-1] + b',"session_id":null,"unknown":1}'
    return lambda: decode_canonical(written, Adjustments())


def masked(of: Trace) -> Callable[[], Any]:
    attributes = {"answer": of.answer, "chunks": [chunk.text for chunk in of.contexts or ()]}
    given = replace(of, attributes=attributes)
    return lambda: MASKING.mask(given, Resources().batch())


def named(of: Trace) -> Callable[[], Any]:
    chunks = tuple(Chunk((chunk.text or "")[:100] + chunk.id) for chunk in of.contexts or ())
    given = replace(of, contexts=chunks)
    return lambda: NAMES.mask(given)


def stored(of: Trace) -> Callable[[], Any]:
    return lambda: rest_of(of)


def sentences(of: Trace) -> Callable[[], Any]:
    return lambda: split(of.answer or "")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", [strictly, leniently, masked, named, stored, sentences])
def test_time_grows_as_the_record_does(path: Callable[[Trace], Callable[[], Any]]) -> None:
    for name, make in SHAPES.items():
        fault = growth_fault(path(make(SIZE)), path(make(4 * SIZE)), 4)
        assert fault is None, f"{name}: {fault}"


def test_so_many_texts_of_a_trace_are_looked_through_and_the_rest_is_withheld() -> None:
    each = 50
    count = 2 * MAX_CHARACTERS // each
    given = trace(answer="Yes.", attributes={"notes": [f"{i:0{each}}x" for i in range(count)]})
    notes = MASKING.mask(given, Resources().batch()).attributes["notes"]
    seen = [note for note in notes if note != WITHHELD]
    assert (
        len(seen) * (each + CHARACTERS_PER_TEXT) <= MAX_CHARACTERS < (len(seen) + 3) * (each + CHARACTERS_PER_TEXT + 1)
    )
    assert WITHHELD not in notes[: len(seen)]


def test_a_long_text_costs_the_ones_behind_it_nothing() -> None:
    given = trace(question="a " * MAX_CHARACTERS, answer="I am bob@example.com")
    shown = MASKING.mask(given, Resources().batch())
    assert (shown.question, shown.answer) == (WITHHELD, "I am [email]")


def test_names_beyond_the_limit_are_withheld_and_stay_apart() -> None:
    chunks = tuple(Chunk(f"ann{i}@example.com") for i in range(MAX_CHARACTERS // CHARACTERS_PER_TEXT))
    ids = [chunk.id for chunk in NAMES.mask(trace(answer="Yes.", contexts=chunks)).contexts or ()]
    assert len(set(ids)) == len(ids)
    assert any(id.startswith(WITHHELD) for id in ids)
    assert not any("@" in id for id in ids)
