"""The built-in evaluators are what the catalogue says: id by id, metric by metric, parameter by parameter."""

import pytest

from ragtide.evaluators.registry import load
from tests.evaluators.builtin.catalogue import FAST, Line
from tests.evaluators.builtin.catalogue_of_judges import JUDGE
from tests.evaluators.builtin.catalogue_of_models import MODEL

CATALOGUE = FAST | MODEL | JUDGE


def test_every_evaluator_of_the_catalogue_is_there() -> None:
    assert CATALOGUE.keys() <= load().keys()


@pytest.mark.parametrize("id", CATALOGUE)
def test_an_evaluator_is_what_the_catalogue_says(id: str) -> None:
    evaluator, entry = load()[id], CATALOGUE[id]
    declared = {
        Line(metric.key, metric.low, metric.high, metric.better, metric.threshold, metric.primary, metric.per)
        for metric in evaluator.metrics
        if metric.key not in entry.more_metrics
    }
    assert declared == set(entry.metrics)
    assert {metric.key for metric in evaluator.metrics} == {line.key for line in entry.metrics} | {*entry.more_metrics}
    assert (evaluator.domain, evaluator.method) == (entry.domain, entry.method)
    assert {evaluator.rule_of(metric) for metric in evaluator.metrics} == {entry.rule}
    assert set(evaluator.required) == entry.required
    params = evaluator.params().model_dump()
    assert {name: value for name, value in params.items() if name not in entry.more_params} == entry.params
    assert set(params) == {*entry.params, *entry.more_params}


@pytest.mark.parametrize("id", CATALOGUE)
def test_every_metric_and_parameter_says_what_it_is(id: str) -> None:
    evaluator = load()[id]
    assert evaluator.description
    assert all(metric.description for metric in evaluator.metrics)
    assert all(field.description for field in evaluator.params.model_fields.values())


def test_standards_follow_domain_and_inputs() -> None:
    registry = load()
    assert registry["pii_leakage"].standards == ("Privacy Enhanced", "Secure and Resilient")
    assert registry["groundedness"].standards == ("Valid and Reliable", "Outcomes Analysis")
    assert registry["rouge"].standards == ("Valid and Reliable", "Outcomes Analysis", "Conceptual Soundness")


@pytest.mark.parametrize("id", CATALOGUE)
def test_lanes_follow_the_method(id: str) -> None:
    evaluator = load()[id]
    assert evaluator.lane == ("model" if id in MODEL else "judge" if id in JUDGE else "fast")


def test_summaries_are_all_that_some_evaluators_look_at() -> None:
    assert {id for id, evaluator in load().items() if evaluator.tasks == ("summarization",)} >= {
        "content_analysis",
        "sari",
        "summarization_faithfulness",
    }
