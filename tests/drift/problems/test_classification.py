"""What a problem is called: types and codes as the specification's tables have them, for every metric there is."""

from typing import get_args

import pytest

from ragtide.drift.problems.classification import _TYPE_OF_METRIC, code_of, standards_of, type_of
from ragtide.drift.problems.kinds import Aspect, Kind
from ragtide.drift.problems.remediation import actions_for
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.evaluators.registry import load

METRICS = metrics_by_name(load())
SCALING, ACCURACY, MISINFORMATION = "P0203 Scaling", "P0204 Accuracy", "E0402 Generative misinformation"
LISTED = {
    "operations.latency_seconds": ("efficiency", SCALING),
    "operations.time_to_first_token_seconds": ("efficiency", SCALING),
    "operations.cost_usd": ("cost", SCALING),
    "operations.input_tokens": ("cost", SCALING),
    "operations.output_tokens": ("cost", SCALING),
    "operations.error": ("runtime", SCALING),
    "operations.empty_answer": ("data_quality", "P0104 Data quality issues"),
    "operations.empty_contexts": ("data_quality", "P0104 Data quality issues"),
    "pii_leakage.passes": ("privacy", "P0300 Privacy"),
    "sensitive_data_leakage.passes": ("security", "S0301 Information leak"),
    "encoding_guardrail.passes": ("security", "S0403 Adversarial example"),
    "toxicity.toxicity": ("fairness", "E0301 Toxicity"),
    "fairness_bias.fairness_bias": ("fairness", "E0100 Bias/discrimination"),
    "context_mrr.reciprocal_rank": ("retrieval", ACCURACY),
    "rouge.rouge_l": ("accuracy", ACCURACY),
    "groundedness.groundedness": ("accuracy", MISINFORMATION),
    "hallucination.hallucination": ("accuracy", MISINFORMATION),
    "faithfulness_nli.faithfulness": ("accuracy", MISINFORMATION),
    "summarization_faithfulness.summac_zs": ("accuracy", MISINFORMATION),
}


@pytest.mark.parametrize("name", LISTED)
def test_type_and_code_are_the_specifications(name: str) -> None:
    type_ = type_of(METRICS[name], "mean")
    assert (type_, code_of(METRICS[name], type_)) == LISTED[name]


ROBUSTNESS = "P0200 Model issues: ability for the AI to perform as intended"
STABILITY, QUALITY_OF_DATA = "P0201 Resilience/stability", "P0104 Data quality issues"
OF_KINDS: list[tuple[Aspect, Kind, str, str]] = [  # whatever the metric; the specification's paragraph and table
    ("flip", "flip", "robustness", ROBUSTNESS),
    ("inconsistency", "inconsistency", "stability", STABILITY),
    ("coverage", "coverage", "data_quality", QUALITY_OF_DATA),
    ("missing", "missing_data", "data_quality", QUALITY_OF_DATA),
    ("finding", "finding", "data_quality", QUALITY_OF_DATA),
    ("inputs", "input_drift", "data_quality", "P0101 Data drift"),
    ("error", "evaluator_error", "runtime", SCALING),
    ("jobs", "threshold", "runtime", SCALING),
    ("fleet", "fleet_change", "runtime", SCALING),
    ("storage", "threshold", "storage", SCALING),
]
CODES = {code for _, code in LISTED.values()} | {code for *_, code in OF_KINDS} | {"P0102 Concept drift"}
TRANSPARENCY_KINDS = ("coverage", "missing_data", "evaluator_error", "judge_shift")


@pytest.mark.parametrize(("aspect", "kind", "type_", "code"), OF_KINDS)
def test_how_it_was_found_goes_before_what_was_measured(aspect: Aspect, kind: Kind, type_: str, code: str) -> None:
    for name in ("pii_leakage.passes", "operations.latency_seconds", "groundedness.groundedness"):
        assert type_of(METRICS[name], kind, aspect) == type_
        assert code_of(METRICS[name], type_, kind) == code
    assert (type_of(None, kind, aspect), code_of(None, type_, kind)) == (type_, code)
    assert actions_for(type_, "", aspect, kind, "disk")


@pytest.mark.parametrize(
    ("kind", "name", "type_", "code"),
    [
        ("drift", "groundedness.groundedness", "accuracy", "P0102 Concept drift"),
        ("change_point", "context_mrr.reciprocal_rank", "retrieval", "P0102 Concept drift"),
        ("drift", "toxicity.toxicity", "fairness", "P0102 Concept drift"),
        ("drift", "operations.latency_seconds", "efficiency", SCALING),  # no score, no concept
        ("change_point", "operations.cost_usd", "cost", SCALING),
        ("failure_rate", "groundedness.groundedness", "accuracy", MISINFORMATION),
        ("slo_burn", "operations.error", "runtime", SCALING),
    ],
)
def test_drift_has_the_type_of_its_metric_and_a_code_of_its_own(kind: Kind, name: str, type_: str, code: str) -> None:
    assert type_of(METRICS[name], kind) == type_
    assert code_of(METRICS[name], type_, kind) == code


def test_labels_of_answers_that_change_are_no_failure_to_run() -> None:
    type_ = type_of(None, "change_point")
    assert (type_, code_of(None, type_, "change_point")) == ("accuracy", "P0102 Concept drift")


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_metric_has_a_type_a_code_actions_and_standards(kind: Kind) -> None:
    for metric in METRICS.values():
        type_ = type_of(metric, kind)
        assert code_of(metric, type_, kind) in CODES
        assert actions_for(type_, metric.evaluator.id, "level", kind)
        assert {"Ongoing Monitoring", *metric.evaluator.standards} <= {*standards_of(metric, kind)}
        assert ("Accountable and Transparent" in standards_of(metric, kind)) == (kind in TRANSPARENCY_KINDS)


def test_every_kind_says_what_to_do_before_what_its_evaluator_says() -> None:
    for kind in get_args(Kind):
        said = actions_for("accuracy", "rouge", "level", kind)
        assert (said[-1] == actions_for("accuracy", "rouge", "level")[-1]) == (
            kind not in (*TRANSPARENCY_KINDS, "input_drift", "fleet_change")
        )
        assert not any("{" in action for action in said)
    assert actions_for("accuracy", "rouge", "level", "threshold") == actions_for("", "rouge", "level")


def test_lack_of_scores_is_a_matter_of_data_whatever_was_to_be_scored() -> None:
    for name in ("pii_leakage.passes", "operations.error", "groundedness.groundedness"):
        type_ = type_of(METRICS[name], "coverage")
        assert (type_, code_of(METRICS[name], type_)) == ("data_quality", "P0104 Data quality issues")


def test_metrics_with_a_type_of_their_own_are_there() -> None:
    assert _TYPE_OF_METRIC.keys() <= METRICS.keys()
