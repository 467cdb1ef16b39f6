from math import inf, nan
from typing import Any

import pytest

from ragtide.evaluators.outcome import Finding
from ragtide.evaluators.trace import AppError, Latency, Tokens
from tests.evaluators.builtin.scoring import chunks, scored


def test_everything_recorded_is_told() -> None:
    given = scored(
        "operations",
        answer="Yes.",
        contexts=chunks("text"),
        latency=Latency(total_s=1.5, first_token_s=0.25),
        tokens=Tokens(input=100, output=20),
        cost_usd=0.002,
    )
    assert given.metrics == {
        "latency_seconds": 1.5,
        "time_to_first_token_seconds": 0.25,
        "input_tokens": 100.0,
        "output_tokens": 20.0,
        "cost_usd": 0.002,
        "error": 0.0,
        "empty_answer": 0.0,
        "empty_contexts": 0.0,
    }


def test_what_was_not_recorded_is_absent_and_never_zero() -> None:
    assert scored("operations", question="Why?").metrics == {"error": 0.0}
    assert scored("operations", question="Why?", latency=Latency(), tokens=Tokens(input=0)).metrics == {
        "error": 0.0,
        "input_tokens": 0.0,
    }


def test_recorded_and_empty_is_not_the_same_as_not_recorded() -> None:
    given = scored("operations", answer=" \n", contexts=())
    assert given.metrics == {"error": 0.0, "empty_answer": 1.0, "empty_contexts": 1.0}


def test_chunks_of_ids_only_are_not_empty_contexts() -> None:
    assert scored("operations", answer="Yes.", contexts=chunks(None)).metrics["empty_contexts"] == 0.0


def test_an_error_of_the_application_counts() -> None:
    assert scored("operations", question="Why?", error=AppError("Timeout")).metrics["error"] == 1.0


def test_however_long_the_texts_the_rest_is_told() -> None:
    long = "word " * 1_000_000
    metrics = scored("operations", answer=long, contexts=chunks(long), latency=Latency(total_s=2.0)).metrics
    assert metrics == {"latency_seconds": 2.0, "error": 0.0, "empty_answer": 0.0, "empty_contexts": 0.0}


@pytest.mark.parametrize("value", [nan, inf, -1.0, "1.5", 10**400], ids=["nan", "inf", "negative", "text", "huge"])
@pytest.mark.parametrize("field", ["latency", "tokens", "cost"])
def test_a_value_that_is_not_valid_leaves_the_others(field: str, value: Any) -> None:
    latency = Latency(total_s=value if field == "latency" else 1.5, first_token_s=0.25)
    tokens = Tokens(input=value if field == "tokens" else 100, output=20)
    given = scored(
        "operations", answer="Yes.", latency=latency, tokens=tokens, cost_usd=value if field == "cost" else 0.5
    )
    key = {"latency": "latency_seconds", "tokens": "input_tokens", "cost": "cost_usd"}[field]
    valid = {"latency_seconds": 1.5, "input_tokens": 100.0, "cost_usd": 0.5}
    del valid[key]
    others = {"time_to_first_token_seconds": 0.25, "output_tokens": 20.0, "error": 0.0, "empty_answer": 0.0}
    assert given.metrics == {**valid, **others}
    assert given.findings == (Finding(f"invalid_{key}", f"{key} is no finite number of 0 or more."),)
