"""Type, code and standards of a problem, as the AVID taxonomy and the compliance principles have them."""

from collections.abc import Mapping

from ragtide.drift.problems.kinds import KINDS, Aspect, Kind, KindInfo
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.spec import RuleKind
from ragtide.evaluators.standards import ACCOUNTABLE_AND_TRANSPARENT, ONGOING_MONITORING

LEAK_TYPES = ("privacy", "security")  # private data or a secret got out
_TYPE_OF_ASPECT: Mapping[Aspect, str] = {  # for level it follows from the kind or the metric
    "coverage": "data_quality",
    "missing": "data_quality",
    "finding": "data_quality",
    "inputs": "data_quality",
    "flip": "robustness",
    "inconsistency": "stability",
    "error": "runtime",
    "jobs": "runtime",
    "fleet": "runtime",
    "judge": "data_quality",
    "storage": "storage",
}
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
    "robustness": "P0200 Model issues: ability for the AI to perform as intended",
    "stability": "P0201 Resilience/stability",
    "data_quality": "P0104 Data quality issues",
    "efficiency": "P0203 Scaling",
    "cost": "P0203 Scaling",
    "storage": "P0203 Scaling",
    "runtime": "P0203 Scaling",
}
_SCALING = "P0203 Scaling"  # figures of operations that drift are no scores, and none of their codes is of concepts
_MISINFORMATION = ("hallucination", "groundedness", "faithfulness", "fact_check")  # in names of evaluators


def type_of(metric: MetricRef | None, kind: Kind | RuleKind, aspect: Aspect = "level") -> str:
    """Return the type of a problem: that of its kind, else that of its metric, which may be None."""
    info = KINDS.get(kind, KindInfo())
    named = _TYPE_OF_ASPECT.get(aspect) or info.type
    if named is not None:
        return named
    if metric is None:
        return "accuracy" if info.code else "runtime"  # labels of answers that drift, or the system's own
    named = _TYPE_OF_METRIC.get(metric.name) or _TYPE_OF_EVALUATOR.get(metric.evaluator.id)
    return named or _TYPE_OF_DOMAIN.get(metric.evaluator.domain, "accuracy")


def code_of(metric: MetricRef | None, type_: str, kind: Kind | RuleKind = "threshold") -> str:
    """Return the code of the AVID taxonomy and its words."""
    code = KINDS.get(kind, KindInfo()).code
    if code is not None and _CODE_OF_TYPE[type_] != _SCALING:
        return code
    evaluator = "" if metric is None else metric.evaluator.id
    if type_ == "security" and evaluator == "encoding_guardrail":
        return "S0403 Adversarial example"
    if type_ == "fairness" and metric is not None and "toxic" in metric.name:
        return "E0301 Toxicity"
    if type_ == "accuracy" and any(word in evaluator for word in _MISINFORMATION):
        return "E0402 Generative misinformation"
    return _CODE_OF_TYPE[type_]


def standards_of(metric: MetricRef | None, kind: Kind | RuleKind) -> tuple[str, ...]:
    """What the evaluator serves, what every scheduled job serves, and what those serve that say a figure is missing."""
    served = () if metric is None else metric.evaluator.standards
    found = (ACCOUNTABLE_AND_TRANSPARENT,) if KINDS.get(kind, KindInfo()).about_figures else ()
    return tuple(dict.fromkeys((*served, ONGOING_MONITORING, *found)))
