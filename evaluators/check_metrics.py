"""The metrics of every evaluator that checks a condition: 0 or 1 for a record, so that means over windows are rates."""

from ragtide.evaluators.spec import Metric

CHECK = (
    Metric("passes", better="higher", threshold=0.5, primary=True, description="1 where the condition holds"),
    Metric("failures", better="lower", threshold=0.5, description="1 - passes"),
    Metric("generation_failures", better="lower", threshold=0.5, description="1 where the answer alone fails"),
)
CHECK_WITH_CONTEXTS = (
    *CHECK,
    Metric(
        "retrieval_failures",
        better="lower",
        threshold=0.5,
        optional=True,
        description="1 where a context fails; absent where no contexts were recorded",
    ),
)


def check_metrics(answer_fails: bool, contexts_fail: bool | None = None) -> dict[str, float]:
    """Values of `CHECK_WITH_CONTEXTS`; of `CHECK` where the contexts were not looked at (None)."""
    fails = answer_fails or bool(contexts_fail)
    metrics = {"passes": float(not fails), "failures": float(fails), "generation_failures": float(answer_fails)}
    return metrics if contexts_fail is None else metrics | {"retrieval_failures": float(contexts_fail)}
