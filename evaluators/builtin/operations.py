from dataclasses import dataclass
from math import inf
from sys import float_info

from ragtide.evaluators.outcome import Finding, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, NoParams, Shared, evaluator
from ragtide.evaluators.trace import AppError, Chunk, Latency, Tokens


@dataclass(frozen=True, slots=True)
class Inputs:
    """Operational fields of the trace."""

    latency: Latency | None
    tokens: Tokens | None
    cost_usd: float | None
    error: AppError | None
    answer: str | None
    contexts: tuple[Chunk, ...] | None


def _metric(key: str, unit: str, description: str, primary: bool = False) -> Metric:
    return Metric(key, 0.0, inf, "lower", primary=primary, optional=True, unit=unit, description=description)


METRICS = (
    _metric("latency_seconds", "s", "time to the complete answer", primary=True),
    _metric("time_to_first_token_seconds", "s", "time to the first token"),
    _metric("input_tokens", "tokens", "input tokens of all model calls"),
    _metric("output_tokens", "tokens", "output tokens of all model calls"),
    _metric("cost_usd", "usd", "cost as recorded, else from the configured prices"),
    Metric(
        "error", better="lower", threshold=0.05, primary=True, binary=True, description="1 if the application failed"
    ),
    Metric(
        "empty_answer",
        better="lower",
        threshold=0.05,
        primary=True,
        optional=True,
        binary=True,
        description="1 if the answer is blank; absent if no answer was recorded",
    ),
    Metric(
        "empty_contexts",
        better="lower",
        threshold=0.05,
        primary=True,
        optional=True,
        binary=True,
        description="1 if nothing was retrieved; absent if no contexts were recorded",
    ),
)


@evaluator(
    "operations",
    version=2,
    domain="generation",
    method="rule",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
    budget=Budget(characters=10_000_000),  # it only checks whether texts are blank
)
def operations(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Operational metrics of the trace: latency, time to first token, tokens, cost, error, empty answer and empty
    contexts, each if it was recorded. A value that is no finite number of 0 or more is left out, with a finding.
    """
    latency, tokens = row.latency or Latency(), row.tokens or Tokens()
    measured = {
        "latency_seconds": latency.total_s,
        "time_to_first_token_seconds": latency.first_token_s,
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cost_usd": row.cost_usd,
    }
    invalid = [key for key, value in measured.items() if value is not None and not _is_valid(value)]
    recorded = {
        **{key: value for key, value in measured.items() if key not in invalid},
        "error": row.error is not None,
        "empty_answer": None if row.answer is None else not row.answer.strip(),
        "empty_contexts": None if row.contexts is None else not row.contexts,
    }
    return Scored(
        {key: float(value) for key, value in recorded.items() if value is not None},
        findings=tuple(Finding(f"invalid_{key}", f"{key} is no finite number of 0 or more.") for key in invalid),
    )


def _is_valid(value: object) -> bool:
    """Whether it is a finite number of 0 or more: values of records that were made in Python are not checked."""
    return isinstance(value, (int, float)) and 0 <= value <= float_info.max
