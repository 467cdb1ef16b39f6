"""What an application costs and how long it takes is watched for changes, and a change has the metric's own type."""

import pytest

from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.problems.classification import code_of, type_of
from ragtide.evaluators.registry import load

WATCHED = monitored_metrics(load().values())


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("operations.latency_seconds", "efficiency"),
        ("operations.time_to_first_token_seconds", "efficiency"),
        ("operations.cost_usd", "cost"),
        ("operations.input_tokens", "cost"),
        ("operations.output_tokens", "cost"),
    ],
)
def test_cost_and_latency_are_watched_and_have_their_own_type(name: str, type_: str) -> None:
    watch = WATCHED[name]
    assert (watch.kind, watch.aspect) == ("positive", "level")
    assert type_of(watch.ref, "change_point", watch.aspect) == type_
    assert code_of(watch.ref, type_, "change_point") == "P0203 Scaling"
