from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, NoParams, Shared, evaluator
from ragtide.evaluators.trace import AppError, Chunk, Latency, Tokens


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the trace says of its own making."""

    latency: Latency | None
    tokens: Tokens | None
    cost_usd: float | None
    error: AppError | None
    answer: str | None
    contexts: tuple[Chunk, ...] | None


def _metric(key: str, unit: str, description: str, primary: bool = False) -> Metric:
    return Metric(key, 0.0, inf, "lower", primary=primary, optional=True, unit=unit, description=description)


METRICS = (
    _metric("latency_seconds", "s", "from question to whole answer", primary=True),
    _metric("time_to_first_token_seconds", "s", "from question to first token"),
    _metric("input_tokens", "tokens", "tokens read by all model calls"),
    _metric("output_tokens", "tokens", "tokens written by all model calls"),
    _metric("cost_usd", "usd", "as recorded, else by the configured prices"),
    Metric("error", better="lower", threshold=0.05, primary=True, description="1 where the application failed"),
    Metric(
        "empty_answer",
        better="lower",
        threshold=0.05,
        primary=True,
        optional=True,
        description="1 where the answer is blank; absent where no answer was recorded",
    ),
    Metric(
        "empty_contexts",
        better="lower",
        threshold=0.05,
        primary=True,
        optional=True,
        description="1 where nothing was retrieved; absent where no contexts were recorded",
    ),
)


@evaluator(
    "operations",
    version=1,
    domain="generation",
    method="rule",
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
    budget=Budget(characters=10_000_000),  # of a text it only looks whether it is blank
)
def operations(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """What the trace says of its own making: latency, time to first token, tokens, cost, error, empty answer, empty
    contexts; each only where it was recorded.
    """
    for row in rows:
        latency, tokens = row.latency or Latency(), row.tokens or Tokens()
        told = {
            "latency_seconds": latency.total_s,
            "time_to_first_token_seconds": latency.first_token_s,
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
            "cost_usd": row.cost_usd,
            "error": row.error is not None,
            "empty_answer": None if row.answer is None else not row.answer.strip(),
            "empty_contexts": None if row.contexts is None else not row.contexts,
        }
        yield Scored({key: float(value) for key, value in told.items() if value is not None})
