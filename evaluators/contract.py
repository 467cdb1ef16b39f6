"""Checks every outcome before it is stored. A bad one becomes `Failed("contract")`, never a number."""

import math
from collections.abc import Mapping
from numbers import Real

from ragtide.evaluators.outcome import LONGEST_EXPLANATION, Evidence, Failed, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import MOST_PARTS, parts_fault
from ragtide.evaluators.slugs import PATTERN, is_slug
from ragtide.evaluators.spec import Evaluator
from ragtide.evaluators.trace import LONGEST_NAME, MOST_NAMES, Trace

_LABEL_LENGTH = 100
_MOST_FINDINGS = 1_000
_FLOAT = frozenset({float})
_BINARY = (0, 1)
_FIELDS = frozenset(Trace.__struct_fields__)


def validate_outcome(evaluator: Evaluator, outcome: object) -> Outcome:
    """Return the outcome with plain floats, or a `Failed("contract")` with the reason, which never quotes the trace."""
    if not isinstance(outcome, (Scored, NotApplicable, Failed)):
        return Failed("contract", f"gave a {type(outcome).__name__}, not a Scored, NotApplicable or Failed")
    fault = _fault(evaluator, outcome)
    if fault is not None:
        return Failed("contract", fault)
    return _with_plain_floats(outcome) if isinstance(outcome, Scored) else outcome


def _fault(evaluator: Evaluator, outcome: Outcome) -> str | None:
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
        or _explanation(evaluator, outcome.explanation)
    )


def _metrics(evaluator: Evaluator, metrics: Mapping[str, float]) -> str | None:
    given = 0
    for metric in evaluator.metrics:
        value = metrics.get(metric.key)
        if value is None:
            if metric.key in metrics or not (metric.optional or evaluator.combine):
                return f"metric {metric.key} is missing"
            continue
        given += 1
        if type(value) is not float and not isinstance(value, Real):
            return f"metric {metric.key} is a {type(value).__name__}, not a number"
        if not metric.low <= value <= metric.high or not math.isfinite(value):  # NaN fails every comparison
            return f"metric {metric.key} is {float(value)!r}, outside [{metric.low}, {metric.high}]"
        if metric.binary and value not in _BINARY:
            return f"metric {metric.key} is {float(value)!r}, and is declared binary: 0 or 1"
    if given != len(metrics):
        return f"{len(metrics) - given} metrics are not declared (valid: {', '.join(m.key for m in evaluator.metrics)})"
    return None


def _categories(categories: Mapping[str, str]) -> str | None:
    if len(categories) > MOST_NAMES:
        return f"a record has at most {MOST_NAMES} categories"
    for key, label in categories.items():
        if not isinstance(label, str) or len(label) > _LABEL_LENGTH or not is_slug(key):
            return f"categories must be slugs with labels of at most {_LABEL_LENGTH} characters"
    return None


def _parts(evaluator: Evaluator, parts: Mapping[str, float]) -> str | None:
    for key, count in parts.items():
        number = type(count) is float or isinstance(count, Real)
        if not isinstance(key, str) or len(key) > LONGEST_NAME or not number or not math.isfinite(count):
            return f"parts must be finite numbers by name, of at most {LONGEST_NAME} characters"
    if len(parts) > MOST_PARTS:
        return f"a record has at most {MOST_PARTS} parts"
    return None if evaluator.combine is None else parts_fault(parts)


def _evidence(evidence: tuple[Evidence, ...]) -> str | None:
    for one in evidence:
        if one.field not in _FIELDS or not 0 <= one.start <= one.end:
            return "evidence must point at a field of the trace, with 0 <= start <= end"
        if len(one.chunk_id or "") > LONGEST_NAME or len(one.kind or "") > _LABEL_LENGTH:
            return f"evidence must have a chunk's id of at most {LONGEST_NAME} characters, a kind of {_LABEL_LENGTH}"
        if one.score is not None and not math.isfinite(one.score):
            return "evidence must have a finite score, or none"
    return None


def _findings(findings: tuple[Finding, ...]) -> str | None:
    if len(findings) > _MOST_FINDINGS:
        return f"a record has at most {_MOST_FINDINGS} findings"
    for finding in findings:
        if fault := _slug("finding's kind", finding.kind):
            return fault
    return None


def _explanation(evaluator: Evaluator, explanation: object) -> str | None:
    if explanation == "":
        return None
    if not isinstance(explanation, str) or len(explanation) > LONGEST_EXPLANATION:
        return f"an explanation must be a text of at most {LONGEST_EXPLANATION:,} characters"
    return None if evaluator.judge is not None else "an explanation is a judge's, and the evaluator asks none"


def _slug(what: str, value: object) -> str | None:
    return None if is_slug(value) else f"its {what} is not a slug ({PATTERN})"


def _with_plain_floats(outcome: Scored) -> Scored:
    """Convert numpy numbers and booleans: the store takes floats."""
    if _FLOAT.issuperset(map(type, outcome.metrics.values())) and _FLOAT.issuperset(map(type, outcome.parts.values())):
        return outcome
    return Scored(
        {key: float(value) for key, value in outcome.metrics.items()},
        outcome.categories,
        {key: float(value) for key, value in outcome.parts.items()},
        outcome.evidence,
        outcome.findings,
        outcome.explanation,
    )
