"""What a problem is called: types and codes as the specification's tables have them, for every metric there is."""

import pytest

from drift.actions import actions_for
from drift.rules.series import Kind
from drift.taxonomy import _TYPE_OF_METRIC, code_of, standards_of, type_of
from drift.windows.metrics import metrics_by_name
from evaluators.registry import load

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
CODES = {code for _, code in LISTED.values()}


@pytest.mark.parametrize("name", LISTED)
def test_type_and_code_are_the_specifications(name: str) -> None:
    type_ = type_of(METRICS[name], "mean")
    assert (type_, code_of(METRICS[name], type_)) == LISTED[name]


@pytest.mark.parametrize("kind", ["mean", "coverage"])
def test_every_metric_has_a_type_a_code_actions_and_standards(kind: Kind) -> None:
    for metric in METRICS.values():
        type_ = type_of(metric, kind)
        assert code_of(metric, type_) in CODES
        assert actions_for(type_, metric.evaluator.id, "coverage" if kind == "coverage" else "level")
        assert {"Ongoing Monitoring", *metric.evaluator.standards} <= {*standards_of(metric, kind)}
        assert ("Accountable and Transparent" in standards_of(metric, kind)) == (kind == "coverage")


def test_lack_of_scores_is_a_matter_of_data_whatever_was_to_be_scored() -> None:
    for name in ("pii_leakage.passes", "operations.error", "groundedness.groundedness"):
        type_ = type_of(METRICS[name], "coverage")
        assert (type_, code_of(METRICS[name], type_)) == ("data_quality", "P0104 Data quality issues")


def test_metrics_with_a_type_of_their_own_are_there() -> None:
    assert _TYPE_OF_METRIC.keys() <= METRICS.keys()
