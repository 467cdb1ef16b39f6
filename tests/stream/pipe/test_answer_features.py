"""What answers say is stored beside the question's vector: a direction and hashes, never more than settings allow."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ragtide.evaluators import registry
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.rows import EmbeddingRow
from ragtide.stream.ingest.answer_features import MAX_CLAIMS, MAX_SENTENCES, direction
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.records import record

ENABLED = ["answer_relevancy_sentence"]


class Counting(HashingEncoder):
    """Remembers what it was asked for, and breaks on "Boom."."""

    def __init__(self) -> None:
        super().__init__(8)
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        if "Boom." in texts:
            raise RuntimeError("boom")
        return super().encode(texts)


def rows(
    *records: StoredRecord, encoder: HashingEncoder | None = None, enabled: Sequence[str] = ENABLED, **set_: Any
) -> list[EmbeddingRow]:
    settings = Settings.model_validate({"evaluators": {"enabled": enabled}, **set_})
    encoder = encoder or HashingEncoder(8)
    plan = prepare(registry.load(), settings.evaluators, "model", encoder)
    pipeline = Pipeline(plan.prepared, Resources(encoder), settings, lane="model", timely=False)
    return pipeline.process(records).block.embeddings


def answered(answer: Any, number: int = 0, question: Any = "How long is it?") -> StoredRecord:
    return record(trace_id=f"t-{number}", offset=number, question=question, answer=answer)


def claims(answer: Any, **set_: Any) -> list[str]:
    [row] = rows(answered(answer), **set_)
    return list(row.answer_claims)


def test_the_direction_of_the_mean_of_the_sentences() -> None:
    [row] = rows(answered("It is short. It is sweet."))
    mean = HashingEncoder(8).encode(["It is short.", "It is sweet."]).mean(axis=0)
    numbers = np.array(row.answer)
    assert max(abs(numbers)) == 127
    assert numbers @ mean / np.linalg.norm(numbers) / np.linalg.norm(mean) == pytest.approx(1, abs=1e-3)


def test_cosines_of_directions_move_little() -> None:
    one, other = np.random.default_rng(1).standard_normal((2, 384), np.float32)
    near, far = (np.array(direction(vector), np.float32) for vector in (one, other))
    exact = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert near @ far / np.linalg.norm(near) / np.linalg.norm(far) == pytest.approx(exact, abs=0.005)
    assert list(direction(np.zeros(3, np.float32))) == []


def test_claims_are_hashes_that_are_equal_where_the_same_is_said() -> None:
    one, other = claims("Yes, 2 weeks."), claims("Yes! It takes 14 days.")
    assert one == other
    assert [claim.partition(":")[0] for claim in one] == ["stance", "seconds"]
    assert not any("1209600" in claim or "yes" in claim for claim in one)
    assert claims("Yes, 3 weeks.")[0] == one[0]
    assert claims("Yes, 3 weeks.")[1] != one[1]
    assert claims("Yes, 2 weeks.", privacy={"hash_key": "k"}) != one


def test_what_the_question_says_itself_is_no_claim_of_the_answer() -> None:
    [row] = rows(answered("Above $500 it takes 3 days.", question="What about orders above 500 dollars?"))
    assert [claim.partition(":")[0] for claim in row.answer_claims] == ["seconds"]


def test_no_more_claims_than_there_is_room_for() -> None:
    assert len(claims(" ".join(f"{number} kg," for number in range(200)))) == MAX_CLAIMS


def test_only_what_evaluators_embed_is_encoded() -> None:
    encoder = Counting()
    rows(*(answered(f"It is {number}.", number) for number in range(9)), encoder=encoder)
    assert sorted(encoder.texts) == ["How long is it?", *(f"It is {number}." for number in range(9))]
    without: list[dict[str, Any]] = [{"enabled": []}, {"sampling": {"lanes": {"model": 0.0}}}]
    for how in without:
        encoder = Counting()
        [row] = rows(answered("It takes 3 days."), encoder=encoder, **how)
        assert encoder.texts == ["How long is it?"]
        assert not len(row.answer)
        assert row.answer_claims, "what rules read costs no encoder"


@pytest.mark.parametrize(
    "set_",
    [
        {"rules": {"compare_answers": False}},
        {"rules": {"apps": {"docs": {"compare_answers": False}}}},
        {"privacy": {"store_texts": "masked", "store_embeddings": True}},  # no hash of the question either
    ],
)
def test_nothing_is_stored_where_answers_are_not_to_be_compared(set_: dict[str, Any]) -> None:
    [row] = rows(answered("It takes 3 days."), **set_)
    assert not row.is_deleted
    assert (list(row.answer), list(row.answer_claims)) == ([], [])


def test_no_vectors_no_columns() -> None:
    assert rows(answered("It takes 3 days."), privacy={"store_embeddings": False}) == []


def test_an_answer_that_is_not_encoded_whole_has_no_vector_and_costs_no_other_its_own() -> None:
    texts = [..., "", "It is 3. Boom.", "It is so. " * (MAX_SENTENCES + 1), "It is fine."]
    found = rows(*(answered(text, number) for number, text in enumerate(texts)), encoder=Counting())
    assert [bool(len(row.answer)) for row in found] == [False, False, False, False, True]
    assert not any(row.is_deleted for row in found)
