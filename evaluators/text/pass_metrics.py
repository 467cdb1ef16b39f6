"""Metrics of evaluators that check a condition: 0 or 1 for a record, so that means over windows are rates."""

from ragtide.evaluators.spec import Metric

PASS_METRICS = (
    Metric("passes", better="higher", threshold=0.5, primary=True, binary=True, description="1 if the condition holds"),
    Metric("failures", better="lower", threshold=0.5, binary=True, description="1 - passes"),
    Metric("generation_failures", better="lower", threshold=0.5, binary=True, description="1 if the answer fails"),
)
PASS_METRICS_WITH_CONTEXTS = (
    *PASS_METRICS,
    Metric(
        "retrieval_failures",
        better="lower",
        threshold=0.5,
        optional=True,
        binary=True,
        description="1 if a context fails; absent if no contexts were recorded",
    ),
)


def pass_metrics(answer_fails: bool, contexts_fail: bool | None = None) -> dict[str, float]:
    """Return values of `PASS_METRICS_WITH_CONTEXTS`, or of `PASS_METRICS` if contexts were not checked (None)."""
    fails = answer_fails or bool(contexts_fail)
    metrics = {"passes": float(not fails), "failures": float(fails), "generation_failures": float(answer_fails)}
    return metrics if contexts_fail is None else metrics | {"retrieval_failures": float(contexts_fail)}
