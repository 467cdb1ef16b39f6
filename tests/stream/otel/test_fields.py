"""Single fields, by attribute; values of wrong types."""

from typing import Any

import pytest

from ragtide.stream.ingest.otel import map_spans
from tests.stream.otel.scene import fields_of, map_one, oi, span
from tests.stream.otel.test_mapping import CHAIN, llm


@pytest.mark.parametrize(
    ("attributes", "path", "value"),
    [
        ({"gen_ai__request__model": "m", "server__address": "h", "server__port": 8080}, "model.host", "h:8080"),
        ({"gen_ai__prompt__name": "ask", "gen_ai__prompt__version": "3"}, "model.prompt_version", "ask@3"),
        ({"gen_ai__system": "vertex_ai"}, "model.provider", "google"),
        ({"llm__invocation_parameters": '{"model": "m-2"}'}, "model.requested", "m-2"),
        ({"gen_ai__response__model": "unknown", "llm__model_name": "m-3"}, "model.served", "m-3"),
        ({"gen_ai__response__time_to_first_chunk": 0.25}, "latency.first_token_s", 0.25),
        ({"ai__response__msToFirstChunk": 250}, "latency.first_token_s", 0.25),
        ({"llm__cost__total": 0.002}, "cost_usd", 0.002),
        ({"langfuse__observation__cost_details": '{"total": 0.004}'}, "cost_usd", 0.004),
        ({"ragtide__expected": '["At nine."]'}, "expected", ["At nine."]),
        ({"ragtide__condition": '"nine"'}, "condition", '"nine"'),
        ({"ragtide__task": "summarization"}, "task", "summarization"),
        ({"ragtide__segments__tenant": "acme"}, "segments.tenant", "acme"),
        ({"ragtide__segments__floor": 3}, "segments.floor", "3"),
        ({"user__id": "u-1"}, "user_id", "u-1"),
    ],
)
def test_single_fields(attributes: dict[str, Any], path: str, value: Any) -> None:
    found: Any = fields_of(map_one(span(1, **CHAIN), span(2, 1, **{**llm(), **attributes})))
    for name in path.split("."):
        found = found[name]
    assert found == value


def test_an_explicit_task_wins_over_that_of_tools() -> None:
    tool = span(2, 1, **oi("TOOL"))
    assert fields_of(map_one(span(1, **CHAIN), tool))["task"] == "agent"
    assert fields_of(map_one(span(1, **CHAIN, ragtide__task="question_answering"), tool))["task"] == (
        "question_answering"
    )


def test_segments_of_the_application_are_no_attributes_and_the_shallowest_value_wins() -> None:
    many: dict[str, Any] = {f"ragtide__segments__s{number:02}": "x" for number in range(40)}
    mapped = map_spans([span(1, **CHAIN, **many, ragtide__segments__="x")])
    fields = fields_of(mapped.traces[0])
    assert mapped.counts["segments_left_out"] == 9
    assert [*fields["segments"]] == [f"s{number:02}" for number in range(32)]
    assert not any(name.startswith("ragtide.") for name in fields.get("attributes", {}))
    root = span(1, **CHAIN, ragtide__segments__tenant="acme", ragtide__segments__list=["a"])
    few = fields_of(map_one(root, span(2, 1, **llm(ragtide__segments__tenant="inner"))))
    assert few["segments"] == {"tenant": "acme"}


def test_values_of_wrong_types_cost_their_field() -> None:
    mapped = map_one(
        span(1, session__id=["a"], user__id=True, **CHAIN),
        span(2, 1, **llm(llm__token_count__prompt="many", llm__token_count__completion=float("nan"))),
        span(3, 1, gen_ai__operation__name="retrieval", gen_ai__retrieval__documents='[7, {"id": 42, "score": "0.9"}]'),
    )
    fields = fields_of(mapped)
    assert "session_id" not in fields
    assert "user_id" not in fields
    assert "tokens" not in fields
    assert fields["contexts"] == [{"rank": 1, "id": "42", "score": 0.9}]
