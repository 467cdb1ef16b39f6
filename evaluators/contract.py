"""What an outcome must look like before anything is stored: otherwise it is `Failed("contract")`, never a number."""

import math
from collections.abc import Mapping
from numbers import Real

from evaluators.outcome import Evidence, Failed, Finding, NotApplicable, Outcome, Scored
from evaluators.parts import wrong_parts
from evaluators.slugs import PATTERN, is_slug
from evaluators.spec import Evaluator
from evaluators.trace import Trace

_LABEL_LENGTH = 100
_FLOAT = frozenset({float})
_FIELDS = frozenset(Trace.__struct_fields__)


def held(evaluator: Evaluator, outcome: object) -> Outcome:
    """The outcome with plain floats, or the `Failed("contract")` that says what is wrong and quotes nothing."""
    if not isinstance(outcome, (Scored, NotApplicable, Failed)):
        return Failed("contract", f"gave a {type(outcome).__name__}, not a Scored, NotApplicable or Failed")
    wrong = _wrong(evaluator, outcome)
    if wrong is not None:
        return Failed("contract", wrong)
    return _plain(outcome) if isinstance(outcome, Scored) else outcome


def _wrong(evaluator: Evaluator, outcome: Outcome) -> str | None:
    if isinstance(outcome, NotApplicable):
        return _slug("reason", outcome.reason) or _findings(outcome.findings)
    if isinstance(outcome, Failed):
        return _slug("kind", outcome.kind)
    return (
        _metrics(evaluator, outcome.metrics)
        or _categories(outcome.categories)
        or _parts(evaluator, outcome.parts)
        or _evidence(outcome.evidence)
        or _findings(outcome.findings)
    )


def _metrics(evaluator: Evaluator, metrics: Mapping[str, float]) -> str | None:
    seen = 0
    for metric in evaluator.metrics:
        value = metrics.get(metric.key)
        if value is None:
            if metric.key in metrics or not (metric.optional or evaluator.combine):
                return f"metric {metric.key} is missing"
            continue
        seen += 1
        if type(value) is not float and not isinstance(value, Real):
            return f"metric {metric.key} is a {type(value).__name__}, not a number"
        if not metric.low <= value <= metric.high or not math.isfinite(value):  # NaN fails every comparison
            return f"metric {metric.key} is {float(value)!r}, outside [{metric.low}, {metric.high}]"
    if seen != len(metrics):
        return f"{len(metrics) - seen} metrics are not declared (valid: {', '.join(m.key for m in evaluator.metrics)})"
    return None


def _categories(categories: Mapping[str, str]) -> str | None:
    for key, label in categories.items():
        if not isinstance(label, str) or len(label) > _LABEL_LENGTH or not is_slug(key):
            return f"categories must be slugs with labels of at most {_LABEL_LENGTH} characters"
    return None


def _parts(evaluator: Evaluator, parts: Mapping[str, float]) -> str | None:
    for key, count in parts.items():
        number = type(count) is float or isinstance(count, Real)
        if not isinstance(key, str) or not number or not math.isfinite(count):
            return "parts must be finite numbers by name"
    return None if evaluator.combine is None else wrong_parts(parts)


def _evidence(evidence: tuple[Evidence, ...]) -> str | None:
    for place in evidence:
        if place.field not in _FIELDS or not 0 <= place.start <= place.end:
            return "evidence must point at a field of the trace, with 0 <= start <= end"
        if place.score is not None and not math.isfinite(place.score):
            return "evidence must have a finite score, or none"
    return None


def _findings(findings: tuple[Finding, ...]) -> str | None:
    for finding in findings:
        if wrong := _slug("finding's kind", finding.kind):
            return wrong
    return None


def _slug(what: str, value: object) -> str | None:
    return None if is_slug(value) else f"its {what} is not a slug ({PATTERN})"


def _plain(outcome: Scored) -> Scored:
    """numpy's numbers and Python's booleans read alike; a store takes floats."""
    if _FLOAT.issuperset(map(type, outcome.metrics.values())) and _FLOAT.issuperset(map(type, outcome.parts.values())):
        return outcome
    return Scored(
        {key: float(value) for key, value in outcome.metrics.items()},
        outcome.categories,
        {key: float(value) for key, value in outcome.parts.items()},
        outcome.evidence,
        outcome.findings,
    )
