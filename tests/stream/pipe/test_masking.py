"""What `privacy.store_texts` keeps out of the stored texts, through the pipeline, with the evaluators beside it."""

import hmac
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators import registry
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import Trace
from ragtide.sinks.rows import Block, TextRow
from ragtide.stream.ingest.masking import MAX_CHARACTERS, WITHHELD, Masking, by_kind
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings, load
from tests.evaluators.builtin.scoring import NOON
from tests.evaluators.leaks.corpus import positives
from tests.stream.pipe.records import clock, record

CARD, MAIL, PASSWORD = "4111 1111 1111 1111", "bob@example.com", "Tr0ub4dor&3"
LEAKY: dict[str, Any] = {
    "question": f"I am {MAIL}, is my card {CARD} fine?",
    "answer": f"Yes, {MAIL}. The password is {PASSWORD}.",
    "contexts": [{"id": "c-1", "text": f"Card on file: {CARD}"}, {"id": "c-2"}, {"id": "c-3", "text": "Nothing."}],
    "expected": [f"Yes, {MAIL}"],
    "error": {"type": "Timeout", "message": f"no answer for {MAIL}"},
    "attributes": {"note": f"from {MAIL}", "login": {"password": "hunter2!", "ssn": 123456789, "tries": [1, 2, None]}},
}
MASKED = {"store_texts": "masked"}
ALL = EvaluatorSettings(enabled=("pii_leakage", "sensitive_data_leakage"))


def block_of(privacy: dict[str, Any], evaluators: EvaluatorSettings = ALL, **fields: Any) -> Block:
    settings = Settings.model_validate({"privacy": privacy, "evaluators": evaluators.model_dump()})
    plan = prepare(registry.load(), evaluators, "fast", None)
    pipeline = Pipeline(plan.prepared, Resources(), settings, lane="fast", clock=clock)
    return pipeline.process([record(**{**LEAKY, **fields})]).block


def texts(privacy: dict[str, Any], evaluators: EvaluatorSettings = ALL, **fields: Any) -> TextRow:
    [row] = block_of(privacy, evaluators, **fields).texts
    return row


def test_the_kind_stands_in_the_place_of_what_is_found() -> None:
    row = texts(MASKED)
    assert row.question == "I am [email], is my card [card] fine?"
    assert row.answer == "Yes, [email]. The password is [password]."
    assert list(row.chunks) == ["Card on file: [card]", "", "Nothing."]
    assert list(row.expected) == ["Yes, [email]"]
    assert row.error_message == "no answer for [email]"
    assert json.loads(row.attributes) == {
        "note": "from [email]",
        "login": {"password": "[password]", "ssn": "[ssn]", "tries": [1, 2, None]},
    }


def test_a_keyed_hash_stands_beside_the_kind() -> None:
    privacy = {"store_texts": "hashed", "hash_key": "k" * 20}
    row = texts(privacy)
    digest = hmac.new(b"k" * 20, MAIL.encode(), sha256).hexdigest()[:16]
    assert row.answer is not None
    assert row.answer.startswith(f"Yes, [email {digest}]. The password is [password ")
    assert list(row.expected) == [f"Yes, [email {digest}]"]
    assert texts({**privacy, "hash_key": "other"}).answer != row.answer
    assert not any(value in repr(row) for value in (CARD, MAIL, PASSWORD, "hunter2", "123456789"))


def test_scores_are_the_same_whatever_is_stored() -> None:
    full, masked = block_of({"store_texts": "full"}), block_of(MASKED)
    assert full.scores == masked.scores
    assert {row.evaluator: row.metrics["passes"] for row in masked.scores} == {
        "pii_leakage": 0.0,
        "sensitive_data_leakage": 0.0,
    }
    assert full.texts[0].question == LEAKY["question"]


def test_masked_too_where_the_evaluators_do_not_run() -> None:
    row = texts(MASKED, EvaluatorSettings(enabled=("inputs",)))
    assert row.question == "I am [email], is my card [card] fine?"


def test_masking_follows_the_parameters_of_the_evaluators() -> None:
    params: dict[str, dict[str, Any]] = {
        "pii_leakage": {"kinds": ["email", "phone"], "regions": ["DE"], "allow": {"docs": [MAIL]}},
        "sensitive_data_leakage": {"kinds": ["jwt"]},
    }
    evaluators = EvaluatorSettings(enabled=("inputs",), params=params)
    row = texts(MASKED, evaluators, answer=f"{MAIL}, eve@example.com, 030 901820, {CARD}, password: {PASSWORD}")
    assert row.answer == f"{MAIL}, [email], [phone], {CARD}, password: {PASSWORD}"
    other = texts(MASKED, evaluators, answer=MAIL, app="other")
    assert other.answer == "[email]"


def test_kinds_that_are_seldom_personal_are_masked_unless_others_are_listed() -> None:
    answer = "MAC address 00:1A:2B:3C:4D:5E"
    assert texts(MASKED, answer=answer).answer == "MAC address [mac]"
    listed = EvaluatorSettings(enabled=("inputs",), params={"pii_leakage": {"kinds": ["email"]}})
    assert texts(MASKED, listed, answer=answer).answer == answer


@pytest.mark.parametrize(
    "text", ["a " * (MAX_CHARACTERS // 2 + 1), "(2) (3) (44) 555 " * 10_000], ids=["long", "numbers"]
)
def test_what_cannot_be_looked_through_is_withheld(text: str) -> None:
    row = texts(MASKED, answer=text)
    assert row.answer == WITHHELD
    assert row.question == "I am [email], is my card [card] fine?"


def test_what_was_not_recorded_stays_so() -> None:
    row = texts(MASKED, question=None, contexts=..., expected=..., error=..., attributes=...)
    assert (row.question, list(row.chunks), list(row.expected), row.error_message) == (None, [], [], "")
    assert row.attributes == "{}"


def test_hashes_need_a_key(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text('[privacy]\nstore_texts = "hashed"\n')
    with pytest.raises(ConfigError, match=r"store_texts = hashed needs privacy.hash_key"):
        load(file, {})


def masked(**fields: Any) -> Trace:
    masking = Masking(EvaluatorSettings(), by_kind)
    return masking.mask(Trace(trace_id="t", time=NOON, app="a", **fields), Resources().batch())


def test_nothing_of_the_corpus_is_stored() -> None:
    left = [example for example in positives() if example.value in (masked(answer=example.text).answer or "")]
    assert len(left) <= 0.03 * len(positives())


WORDS = st.text("abd xyz,;\n\u00e4\u6f22\ud800", max_size=60)


@given(WORDS, st.sampled_from([("card", CARD), ("email", MAIL), ("phone", "+420 601 123 456")]), WORDS)
def test_all_but_what_is_found_stays_as_it_was(before: str, found: tuple[str, str], after: str) -> None:
    kind, value = found
    assert masked(answer=f"{before} see {value} there {after}").answer == f"{before} see [{kind}] there {after}"


SMALL = st.none() | st.booleans() | st.integers(-999, 999) | WORDS
SHAPES = st.recursive(
    SMALL, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3), max_leaves=12
)


@given(SHAPES)
def test_attributes_of_any_shape_keep_it(value: Any) -> None:
    assert masked(attributes={"free": value}).attributes == {"free": value}
