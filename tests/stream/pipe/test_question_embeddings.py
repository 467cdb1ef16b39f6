"""Questions become vectors: of every trace, in every way of reading it, and of no text that must not be told."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ragtide.evaluators import registry
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Lane, Vectors
from ragtide.sinks.memory import MemorySink
from ragtide.sinks.rows import EmbeddingRow
from ragtide.stream.ingest.embeddings import MAX_CHARACTERS, round_to_bfloat16
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline, SliceResult
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.records import AT_MS, record, version

QUESTION = "What does json.dumps return?"


class Counting(HashingEncoder):
    """Remembers what it was asked for; breaks on "boom", and has no number for "nothing"."""

    def __init__(self) -> None:
        super().__init__(8)
        self.calls: list[Sequence[str]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        if "boom" in texts:
            raise RuntimeError("boom")
        vectors = super().encode(texts)
        vectors[[text == "nothing" for text in texts]] = np.nan
        return vectors


def pipeline(
    encoder: HashingEncoder | None, lane: Lane | None = "model", run_id: str = "live", **set_: Any
) -> Pipeline:
    settings = Settings.model_validate({"evaluators": {"enabled": ["answer_relevancy_sentence"]}, **set_})
    plan = prepare(registry.load(), settings.evaluators, lane, encoder)
    return Pipeline(plan.prepared, Resources(encoder), settings, lane=lane, run_id=run_id, timely=False)


def process(*records: StoredRecord, **how: Any) -> SliceResult:
    return pipeline(how.pop("encoder", HashingEncoder(8)), **how).process(records)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return float(np.dot(one, other) / np.linalg.norm(one) / np.linalg.norm(other))


def test_the_row_of_a_question() -> None:
    [row] = process(record(offset=5)).block.embeddings
    trace = ("live", "docs", "prod", row.time, "t-1", version(5))
    assert row._replace(vector=(), answer=(), answer_claims=()) == EmbeddingRow(*trace, "hashing-8@1", ())
    [encoded] = HashingEncoder(8).encode([QUESTION])
    assert list(row.vector) == pytest.approx(encoded, rel=2**-8)
    assert cosine(row.vector, encoded) > 0.9999


def test_every_number_becomes_the_nearest_with_8_significant_bits() -> None:
    def number(bits: str) -> float:
        return int(bits, 2) / 2**15

    given_ = [
        number("1011001110000000"),
        number("1011001101111111"),
        number("1011001010000000"),
        -number("1111111110000000"),
    ]
    wanted = [number("1011010000000000"), number("1011001100000000"), number("1011001000000000"), -2.0]
    assert round_to_bfloat16(np.array([given_], np.float32)).tolist() == [wanted]
    assert round_to_bfloat16(np.zeros((0, 4), np.float32)).shape == (0, 4)


@given(st.integers(0, 1 << 32))
def test_rounding_moves_no_cosine_by_a_thousandth(seed: int) -> None:
    one, other = np.random.default_rng(seed).standard_normal((2, 384), np.float32)
    near, far = round_to_bfloat16(np.stack([one, other]))
    assert abs(cosine(near, far) - cosine(one, other)) < 0.001


def test_only_where_vectors_belong() -> None:
    for lane, rows in (("model", 1), (None, 1), ("fast", 0)):
        assert len(process(record(), lane=lane).block.embeddings) == rows
    assert process(record(), encoder=None, evaluators={"enabled": []}).block.embeddings == []


@pytest.mark.parametrize("texts", ["full", "masked", "hashed", "off"])
@pytest.mark.parametrize("chosen", [None, True, False])
def test_a_vector_tells_no_text_that_must_not_be_told_unless_asked_to(texts: str, chosen: bool | None) -> None:
    privacy = {"store_texts": texts, "hash_key": "k", "store_embeddings": chosen}
    stored = process(record(), privacy=privacy).block.embeddings
    assert bool(stored) == (texts == "full" if chosen is None else chosen)


def test_a_question_that_went_away_leaves_a_tombstone() -> None:
    sink = MemorySink()
    for offset, question in enumerate([QUESTION, ..., QUESTION, "  "]):
        done = process(record(offset=offset, question=question))
        sink.write(done.block)
        assert len(sink.rows("embeddings")) == (question == QUESTION)
        assert not done.without_vector


def test_of_two_messages_the_later_has_the_vector() -> None:
    first, second = record(offset=1, question="one"), record(offset=2, question="two")
    for order in ([first, second], [second, first]):
        [row] = process(*order).block.embeddings
        assert row.version == version(2)
        assert list(row.vector) == round_to_bfloat16(HashingEncoder(8).encode(["two"]))[0].tolist()


def test_the_encoder_is_asked_once_for_questions_and_answers_together() -> None:
    encoder = Counting()
    process(*(record(trace_id=f"t-{n}", offset=n, question=f"what is {n % 3}?") for n in range(9)), encoder=encoder)
    [texts] = encoder.calls
    assert sorted(texts) == ["It returns a string.", "what is 0?", "what is 1?", "what is 2?"]


def test_what_no_evaluator_looked_at_has_a_vector_too() -> None:
    encoder = Counting()
    records = [record(trace_id=f"t-{n}", offset=n, question=f"what is {n}?") for n in range(4)]
    done = process(*records, encoder=encoder, sampling={"lanes": {"model": 0.0}})
    assert [row.is_deleted for row in done.block.embeddings] == [0, 0, 0, 0]
    assert len(encoder.calls) == 1


def test_a_question_that_the_encoder_cannot_take_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    asked = [f"what is {n}?" for n in range(8)]
    asked[3], asked[6] = "boom", "nothing"
    records = [record(trace_id=f"t-{n}", offset=n, question=question) for n, question in enumerate(asked)]
    done = process(*records, encoder=Counting())
    assert [row.is_deleted for row in done.block.embeddings] == [0, 0, 0, 1, 0, 0, 1, 0]
    assert done.without_vector == {"encoder_failed": 2}
    assert "boom" not in caplog.text


def test_a_question_is_whole_or_not_there() -> None:
    encoder = Counting()
    long = record(trace_id="long", question="x" * MAX_CHARACTERS)
    longer = record(trace_id="longer", question="x" * (MAX_CHARACTERS + 1))
    done = process(long, longer, encoder=encoder, ingest={"max_bytes": 2 * MAX_CHARACTERS})
    assert [(row.trace_id, row.is_deleted) for row in done.block.embeddings] == [("long", 0), ("longer", 1)]
    assert done.without_vector == {"too_long": 1}
    assert max(len(text) for call in encoder.calls for text in call) == MAX_CHARACTERS


RECORDS = st.lists(
    st.builds(
        lambda trace, at, question: record(trace_id=f"t-{trace}", time=AT_MS + at, question=question),
        st.integers(0, 3),
        st.sampled_from([0, 59_999, 60_000]),
        st.sampled_from([..., "", "boom", "what is one?", "what is two?"]),
    ),
    max_size=12,
).map(lambda made: [StoredRecord(r.topic, 0, n, r.timestamp, r.key, r.value) for n, r in enumerate(made)])


@hypothesis_settings(deadline=None, max_examples=40)
@given(RECORDS, st.lists(st.integers(0, 12), max_size=4), st.integers(1, 5))
def test_live_and_replayed_the_same_rows_however_cut_and_however_often_read(
    records: list[StoredRecord], cuts: list[int], batch: int
) -> None:
    whole, parts = MemorySink(), MemorySink()
    whole.write(pipeline(Counting(), lane=None, run_id="r").process(records).block)
    live = pipeline(Counting(), worker={"batch_records": batch})
    slices = [records[a:b] for a, b in pairwise([0, *sorted(cuts), len(records)])]
    for part in [*slices, *slices[:2]]:  # redelivered after a crash
        parts.write(live.process(part).block)

    def rows(sink: MemorySink) -> list[str]:
        return sorted(repr(row._replace(run_id="")) for row in sink.rows("embeddings") if isinstance(row, EmbeddingRow))

    assert rows(parts) == rows(whole)
