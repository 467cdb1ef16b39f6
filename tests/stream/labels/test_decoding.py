"""Labels that cannot be used say why, and quote nothing of what somebody wrote."""

import json
from typing import Any

import pytest

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.label import Classes, Label, Verdict
from ragtide.stream.labels.rows import LabelRows
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.records import AT_MS

SECRET = "my card is 4111 1111 1111 1111"


def sent(value: Any) -> StoredRecord:
    if value is not None and not isinstance(value, bytes):
        value = json.dumps(value).encode()
    return StoredRecord("rag.labels", 0, 3, AT_MS, b"t-1", value)


def label(**facts: Any) -> dict[str, Any]:
    return {"trace_id": "t-1", **facts}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no_value"),
        (b"", "not_json"),
        (b'{"trace_id": "t", "expected": [', "not_json"),
        (b"\xff\xfe", "not_utf8"),
        (b"x" * 2001, "too_big"),
        (b'{"trace_id": "t", "verdict": {"score": NaN}}', "not_finite"),
        (b'{"trace_id": "t", "verdict": {"score": 1e999}}', "not_finite"),
        ([SECRET], "not_an_object"),
        ({"expected": [SECRET]}, "missing_trace_id"),
        (label(trace_id="", expected=[]), "missing_trace_id"),
        (label(trace_id="x" * 1025, expected=[]), "wrong_value"),
        (label(trace_id=7, expected=[]), "wrong_type"),
        (label(), "missing_fact"),
        (label(author="a"), "missing_fact"),
        (label(expected=None, verdict=None), "missing_fact"),
        (label(verdict={}), "missing_fact"),
        (label(labels={}), "missing_field"),
        (label(expected=SECRET), "wrong_type"),
        (label(expected=[SECRET, 7]), "wrong_type"),
        (label(relevance={SECRET: "2"}), "wrong_type"),
        (label(relevance={SECRET: True}), "wrong_type"),
        (label(labels={"expected": {"a": SECRET}}), "wrong_type"),
        (label(verdict={"thumbs": SECRET}), "wrong_value"),
        (label(verdict={"score": "0.5"}), "wrong_type"),
        (label(expected=[], sample_evaluator="toxicity", sample_rate=0), "wrong_value"),
        (label(expected=[], sample_evaluator="toxicity", sample_rate=1.5), "wrong_value"),
        (label(expected=[], sample_evaluator="toxicity", sample_rate="0.1"), "wrong_type"),
        (label(expected=[], sample_evaluator="", sample_rate=0.1), "wrong_value"),
        (label(expected=[], sample_rate=0.1), "missing_fact"),
        (label(expected=[], sample_evaluator="toxicity"), "missing_fact"),
        (label(expected=[], **{SECRET: 1}), "unknown_field"),
        (label(verdict={"thumbs": "up", SECRET: 1}), "unknown_field"),
        (label(expected=[], schema_version=2, brand_new=1), "newer_schema"),
        (label(expected=[], schema_version=0), "unknown_schema"),
        (label(expected=[], schema_version="1"), "wrong_type"),
        (b'{"trace_id": "t", "expected": ' + b"[" * 900 + b"]" * 900 + b"}", "wrong_type"),
    ],
)
def test_a_label_that_cannot_be_used_says_why(value: Any, reason: str) -> None:
    with pytest.raises(BadRecord) as bad:
        decode(sent(value), 2000)
    assert bad.value.reason == reason
    assert bad.value.detail
    assert SECRET not in str(bad.value)


def test_nesting_without_end_is_told_as_such() -> None:
    for surrogate in (b"", rb'"author": "\ud800", '):  # which takes a second pass
        value = b'{"trace_id": "t", ' + surrogate + b'"expected": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        with pytest.raises(BadRecord) as bad:
            decode(sent(value), 1 << 20)
        assert bad.value.reason == "too_deep"


def test_every_fact_is_read() -> None:
    verdict = {"thumbs": "down", "score": 1, "comment": "no \N{SNOWMAN}"}
    facts = label(author="ada", expected=["a", "b"], relevance={"c-1": 2}, labels={"expected": ["x"]}, verdict=verdict)
    facts |= {"sample_rate": 0.25, "sample_evaluator": "toxicity"}
    assert decode(sent(facts | {"schema_version": 1}), 2000) == Label(
        trace_id="t-1",
        author="ada",
        expected=["a", "b"],
        relevance={"c-1": 2.0},
        labels=Classes(expected=["x"]),
        verdict=Verdict(thumbs="down", score=1.0, comment="no \N{SNOWMAN}"),
        sample_rate=0.25,
        sample_evaluator="toxicity",
    )
    assert decode(sent(label(labels={"expected": "x"})), 2000).labels == Classes(expected="x")
    assert decode(sent(label(expected=[])), 2000).expected == []


def test_lone_surrogates_are_replaced() -> None:
    found = decode(sent(rb'{"trace_id": "t", "expected": ["a\ud800b"]}'), 2000)
    assert found.expected == ["a\N{REPLACEMENT CHARACTER}b"]


@pytest.mark.parametrize(
    ("store", "kept"),
    [
        ("full", ("ada", '["a"]', '{"c":1.0}', '"x"', SECRET)),
        ("masked", ("ada", "", "", "", "my card is [card]")),
        ("off", ("ada", "", "", "", "")),
    ],
)
def test_what_is_kept_is_what_privacy_allows(store: str, kept: tuple[str, ...]) -> None:
    facts = label(
        author="ada",
        expected=["a"],
        relevance={"c": 1},
        labels={"expected": "x"},
        verdict={"thumbs": "up", "score": 0.5, "comment": SECRET},
    )
    read = sent(facts)
    settings = Settings.model_validate({"privacy": {"store_texts": store}})
    (row,) = LabelRows(settings).rows_of([decode(read, 2000)], [read])
    assert (row.author, row.expected, row.relevance, row.classes, row.comment) == kept
    assert (row.thumbs, row.score, row.trace_id, row.offset) == ("up", 0.5, "t-1", 3)
    assert row.joins == (store == "full")


def test_a_label_of_a_sample_has_its_rate() -> None:
    sample = {"sample_rate": 0.02, "sample_evaluator": "toxicity"}
    read = [sent(label(verdict={"thumbs": "up"})), sent(label(verdict={"thumbs": "up"}, **sample))]
    rows = LabelRows(Settings()).rows_of([decode(one, 2000) for one in read], read)
    assert [(row.sample_rate, row.sample_evaluator) for row in rows] == [(0.0, ""), (0.02, "toxicity")]


def test_authors_are_hashed_where_users_are() -> None:
    read = sent(label(author="ada", verdict={"thumbs": "up"}))
    hashing = Settings.model_validate({"privacy": {"hash_users": True, "hash_key": "k"}})
    (row,) = LabelRows(hashing).rows_of([decode(read, 2000)], [read])
    assert len(row.author) == 32
    assert "ada" not in row.author
