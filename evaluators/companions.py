"""Companions: cheap metrics that see every trace, and make the estimates of sampled metrics more precise."""

from collections.abc import Iterable, Mapping

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Evaluator, Metric


def companion_of(evaluator: Evaluator, metric: Metric, settings: EvaluatorSettings) -> str | None:
    """Return the companion of a judge's metric, as `evaluator.metric`, or None."""
    name = settings.judge.companions.get(f"{evaluator.id}.{metric.key}", metric.companion)
    return name or None


def metric_named(registry: Mapping[str, Evaluator], name: str) -> tuple[Evaluator, Metric] | None:
    """Return the metric `evaluator.metric` with its evaluator, or None."""
    id, _, key = name.rpartition(".")
    found = registry.get(id)
    return next(((found, metric) for metric in found.metrics if metric.key == key), None) if found else None


def check_companions(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> None:
    """Raise `ConfigError` for a companion that is no cheap metric, or that belongs to no metric of a judge."""
    for name, companion in settings.judge.companions.items():
        where = f"evaluators.judge.companions.{name}"
        if (found := metric_named(registry, name)) is None or found[0].judge is None:
            valid = ", ".join(_names(one for one in registry.values() if one.judge is not None))
            raise ConfigError(f"{where}: there is no such metric of a judge (valid: {valid})")
        if companion:
            check_cheap_metric(registry, companion, where)


def check_cheap_metric(registry: Mapping[str, Evaluator], name: str, where: str) -> Evaluator:
    """Return the evaluator of a metric. Raise `ConfigError` unless it scores single records without a judge."""
    found = metric_named(registry, name)
    if found is None or not _is_cheap(found[0]):
        valid = ", ".join(_names(filter(_is_cheap, registry.values())))
        raise ConfigError(f"{where}: {name!r} is no metric of single records without a judge (valid: {valid})")
    return found[0]


def _is_cheap(evaluator: Evaluator) -> bool:
    return evaluator.lane != "judge" and evaluator.combine is None


def _names(evaluators: Iterable[Evaluator]) -> list[str]:
    return sorted(f"{one.id}.{metric.key}" for one in evaluators for metric in one.metrics)
