"""Type, code and standards of a problem, as the AVID taxonomy and the compliance principles have them."""

from drift.rules.series import Kind
from drift.windows.metrics import WatchedMetric
from evaluators.standards import ACCOUNTABLE_AND_TRANSPARENT, ONGOING_MONITORING

_TYPE_OF_METRIC = {
    "operations.latency_seconds": "efficiency",
    "operations.time_to_first_token_seconds": "efficiency",
    "operations.cost_usd": "cost",
    "operations.input_tokens": "cost",
    "operations.output_tokens": "cost",
    "operations.error": "runtime",
    "operations.empty_answer": "data_quality",
    "operations.empty_contexts": "data_quality",
}
_TYPE_OF_EVALUATOR = {"sensitive_data_leakage": "security", "encoding_guardrail": "security"}
_TYPE_OF_DOMAIN = {"retrieval": "retrieval", "privacy": "privacy", "fairness": "fairness"}
_CODE_OF_TYPE = {
    "security": "S0301 Information leak",
    "privacy": "P0300 Privacy",
    "fairness": "E0100 Bias/discrimination",
    "accuracy": "P0204 Accuracy",
    "retrieval": "P0204 Accuracy",
    "data_quality": "P0104 Data quality issues",
    "efficiency": "P0203 Scaling",
    "cost": "P0203 Scaling",
    "runtime": "P0203 Scaling",
}
_MISINFORMATION = ("hallucination", "groundedness", "faithfulness", "fact_check")  # in names of evaluators


def type_of(metric: WatchedMetric, kind: Kind) -> str:
    """Of a problem with a metric; how it was found goes before what was measured."""
    if kind == "coverage":
        return "data_quality"
    named = _TYPE_OF_METRIC.get(metric.name) or _TYPE_OF_EVALUATOR.get(metric.evaluator.id)
    return named or _TYPE_OF_DOMAIN.get(metric.evaluator.domain, "accuracy")


def code_of(metric: WatchedMetric, type_: str) -> str:
    """The code of the AVID taxonomy and its words."""
    evaluator = metric.evaluator.id
    if type_ == "security" and evaluator == "encoding_guardrail":
        return "S0403 Adversarial example"
    if type_ == "fairness" and "toxic" in metric.name:
        return "E0301 Toxicity"
    if type_ == "accuracy" and any(word in evaluator for word in _MISINFORMATION):
        return "E0402 Generative misinformation"
    return _CODE_OF_TYPE[type_]


def standards_of(metric: WatchedMetric, kind: Kind) -> tuple[str, ...]:
    """What the evaluator serves, and what every scheduled job serves."""
    found = (ACCOUNTABLE_AND_TRANSPARENT,) if kind == "coverage" else ()
    return tuple(dict.fromkeys((*metric.evaluator.standards, ONGOING_MONITORING, *found)))
