"""Resolve which rule and which limits apply to a series.

The evaluator's defaults apply, then overrides from settings, the most specific last."""

import difflib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeVar, get_args

from ragtide.drift.rules.kinds import COVERAGE, RULE_KINDS
from ragtide.drift.rules.model import Rule, RuleKind, Series
from ragtide.drift.settings import LimitOverride, Objective, RuleOverride, RuleSettings
from ragtide.drift.windows import MetricRef, metrics_by_name
from ragtide.evaluators import spec
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.spec import Evaluator


def rule_for(series: Series, metric: MetricRef, settings: RuleSettings) -> Rule | None:
    """Return the rule on the metric's level; None where it is turned off or has no threshold."""
    override, settings = _merged_override(series, settings), settings.of(series.app)
    if not override.enabled or (settings.primary_only and not metric.metric.primary and override is _NO_OVERRIDE):
        return None
    min_value, max_value = override.min, override.max
    if min_value is None and max_value is None:
        min_value, max_value = metric.bounds
    if min_value is None and max_value is None:
        return None
    kind = RULE_KINDS[override.rule or metric.evaluator.rule_of(metric.metric)]
    fair = settings.fairness_share_limit if metric.evaluator.domain == "fairness" else settings.share_limit
    return replace(
        _base_rule(kind, metric, override, settings),
        min=min_value,
        max=max_value,
        limit=fair if override.limit is None else override.limit,
        severity=override.severity,
        failure_limit=settings.failure_limit if override.failure_limit is None else override.failure_limit,
        allow_kinds=override.allow_kinds,
        allow_texts=override.allow_texts,
    )


def rule_of_app(app: str, metric: MetricRef, settings: RuleSettings) -> Rule | None:
    """Return `rule_for` an application as a whole, without its environments, models and segments."""
    return rule_for(Series(app, "", metric.name, "", "", ""), metric, settings)


def rule_of_every_app(metric: MetricRef, settings: RuleSettings) -> Rule | None:
    """Return `rule_for` applications without settings of their own."""
    return rule_of_app("", metric, settings)


def coverage_rule_for(series: Series, metric: MetricRef, settings: RuleSettings) -> Rule | None:
    """Return the rule on records without a score: one per evaluator, on its first primary metric, without segments."""
    override, settings = _merged_override(series, settings), settings.of(series.app)
    if not is_coverage_metric(metric) or series.segment or not override.enabled:
        return None
    return replace(_base_rule(COVERAGE, metric, override, settings), limit=settings.coverage_limit)


def _base_rule(kind: RuleKind, metric: MetricRef, override: RuleOverride, settings: RuleSettings) -> Rule:
    """Make the rule without its bounds and limits."""
    rule = Rule(kind, metric, None, None, resolve_after=override.resolve_after or settings.resolve_after)
    if kind.zero_tolerance:
        return rule
    return replace(
        rule,
        min_sample=override.min_sample or settings.min_sample,
        k=override.k or settings.k,
        m=override.m or settings.m,
    )


def rules_for(series: Series, metric: MetricRef, settings: RuleSettings) -> tuple[Rule, ...]:
    """Return the rules on the metric's level and on its coverage, those that apply."""
    both = (rule_for(series, metric, settings), coverage_rule_for(series, metric, settings))
    return tuple(rule for rule in both if rule is not None)


def is_coverage_metric(metric: MetricRef) -> bool:
    """Whether the evaluator's coverage is reported on this metric: the first primary one."""
    return metric.metric is next((one for one in metric.evaluator.metrics if one.primary), None)


def any_rule_prefilter(metrics: Mapping[str, MetricRef], settings: RuleSettings) -> list[Rule]:
    """Make one rule per metric that has zero tolerance in any series: what breaches there breaches this one."""
    found = []
    primary_only = all(one.primary_only for one in (settings, *map(settings.of, settings.apps)))
    for metric in metrics.values():
        override = [one for one in settings.overrides if one.metric == metric.name]
        kinds = {metric.evaluator.rule_of(metric.metric), *(one.rule for one in override if one.rule is not None)}
        kind = next((RULE_KINDS[name] for name in kinds if RULE_KINDS[name].zero_tolerance), None)
        if kind is None or (primary_only and not metric.metric.primary and not override):
            continue
        own_min, own_max = metric.bounds
        min_values = [own_min, *(one.min for one in override)]
        max_values = [own_max, *(one.max for one in override)]
        min_value = max((bound for bound in min_values if bound is not None), default=None)
        max_value = min((bound for bound in max_values if bound is not None), default=None)
        if min_value is not None or max_value is not None:
            found.append(Rule(kind, metric, min_value, max_value))
    return found


def check_settings(settings: RuleSettings, evaluators: Mapping[str, Evaluator]) -> None:
    """Raise ConfigError where a setting names an unknown metric or evaluator, or bounds that cannot hold."""
    metrics = metrics_by_name(evaluators)
    for override in settings.overrides:
        metric = metrics.get(override.metric)
        if metric is None:
            raise ConfigError(f"rules.overrides: no metric {override.metric!r}{_suggestion(override.metric, metrics)}")
        of_window = metric.evaluator.combine is not None
        if override.rule is not None and of_window == RULE_KINDS[override.rule].per_record:
            usable = [name for name in get_args(spec.RuleKind) if RULE_KINDS[name].per_record != of_window]
            raise ConfigError(
                f"rules.overrides: rule = {override.rule!r} of {override.metric}: it is a metric of "
                f"{'whole windows' if of_window else 'records'}; use {' or '.join(usable)}"
            )
        _check_bounds(f"rules.overrides: {override.metric}", metric, override.min, override.max)
        if override.enabled and metric.metric.threshold is None and override.min is None and override.max is None:
            raise ConfigError(
                f"rules.overrides: {override.metric} has no threshold of its own; give min or max, or enabled = false"
            )
    for limit in settings.limits:
        if limit.evaluator is not None and limit.evaluator not in evaluators:
            raise ConfigError(
                f"rules.limits: no evaluator {limit.evaluator!r}{_suggestion(limit.evaluator, evaluators)}"
            )
    for objective in settings.objectives:
        _check_objective(objective, metrics)


def _check_objective(objective: Objective, metrics: Mapping[str, MetricRef]) -> None:
    where, metric = f"rules.objectives: {objective.name}", metrics.get(objective.metric)
    if metric is None or metric.evaluator.combine is not None:
        of_records = [name for name, one in metrics.items() if one.evaluator.combine is None]
        raise ConfigError(
            f"{where}: no metric of records {objective.metric!r}{_suggestion(objective.metric, of_records)}"
        )
    bounds = objective.bounds(metric.metric)
    if bounds == (None, None):
        raise ConfigError(f"{where}: {objective.metric} has no threshold of its own; give min or max")
    _check_bounds(where, metric, *bounds)


def _check_bounds(where: str, metric: MetricRef, min_value: float | None, max_value: float | None) -> None:
    low, high = metric.metric.low, metric.metric.high
    for name, bound in (("min", min_value), ("max", max_value)):
        if bound is not None and not low <= bound <= high:
            raise ConfigError(f"{where}: {name} = {bound} is outside the range of {metric.name}, [{low}, {high}]")
    if min_value is not None and max_value is not None and min_value > max_value:
        raise ConfigError(f"{where}: min {min_value} is above max {max_value}")


def _suggestion(unknown: str, names: Collection[str]) -> str:
    """Suggest the closest name, and list the names of the same evaluator, or else all evaluators."""
    own = [name for name in names if name.startswith(f"{unknown.partition('.')[0]}.")]
    closest = difflib.get_close_matches(unknown, names, n=1)
    meant = f"; did you mean {closest[0]!r}?" if closest else ""
    return f"{meant} (known: {', '.join(own or sorted({name.partition('.')[0] for name in names}))})"


_NO_OVERRIDE = RuleOverride(metric="")
_SELECTORS = ("metric", "app", "segment", "segment_value")


def _merged_override(series: Series, settings: RuleSettings) -> RuleOverride:
    """Overlay all matching overrides, the most specific last."""
    matching = _matching(settings.overrides, {name: getattr(series, name) for name in _SELECTORS})
    if not matching:
        return _NO_OVERRIDE
    merged: dict[str, object] = {}
    for override in matching:
        merged |= {name: getattr(override, name) for name in override.model_fields_set}
    return RuleOverride.model_validate(merged | dict.fromkeys(_SELECTORS) | {"metric": series.metric})


Override = TypeVar("Override", RuleOverride, LimitOverride)


def _matching(overrides: Iterable[Override], labels: Mapping[str, str]) -> list[Override]:
    """Find overrides whose selectors match the labels or are not set, the most specific last."""
    found = (one for one in overrides if all(getattr(one, name) in (None, value) for name, value in labels.items()))
    return sorted(found, key=lambda one: sum(getattr(one, name) is not None for name in labels))


class Limits(NamedTuple):
    """The settings of these names."""

    error_limit: float
    finding_traces: int
    finding_limit: float


def limits_for(app: str, evaluator: str, settings: RuleSettings) -> Limits:
    """Resolve the limits of an app and an evaluator: the app's defaults, then overrides, the most specific last."""
    sources = [settings.of(app), *_matching(settings.limits, {"app": app, "evaluator": evaluator})]
    values = {name: [getattr(one, name) for one in sources] for name in Limits._fields}
    return Limits(**{name: [value for value in some if value is not None][-1] for name, some in values.items()})
