"""Which rule watches a series: the evaluator's own default, and what settings say otherwise."""

import difflib
from collections.abc import Collection, Mapping, Sequence

from drift.rules.series import Rule, Series
from drift.settings import Objective, RuleOverride, RuleSettings
from drift.windows.metrics import WatchedMetric, metrics_by_name
from evaluators.errors import ConfigError
from evaluators.spec import Evaluator


def rule_for(series: Series, metric: WatchedMetric, settings: RuleSettings) -> Rule | None:
    """The rule on the metric's level, or None: not watched, or nothing says what is good."""
    said, settings = _said(series, settings), settings.of(series.app)
    if not said.enabled or (settings.primary_only and not metric.metric.primary and said is _NOTHING):
        return None
    spec, evaluator = metric.metric, metric.evaluator
    least, greatest = said.min, said.max
    if least is None and greatest is None and spec.threshold is not None:
        least, greatest = (spec.threshold, None) if spec.better == "higher" else (None, spec.threshold)
    if least is None and greatest is None:
        return None
    kind = said.rule or evaluator.rule_of(spec)
    fair = settings.fairness_share_limit if evaluator.domain == "fairness" else settings.share_limit
    return Rule(
        kind=kind,
        watched=metric,
        least=least,
        greatest=greatest,
        limit=fair if said.limit is None else said.limit,
        min_sample=1 if kind == "any" else said.min_sample or settings.min_sample,
        k=1 if kind == "any" else said.k or settings.k,
        m=1 if kind == "any" else said.m or settings.m,
        resolve_after=said.resolve_after or settings.resolve_after,
        severity=said.severity,
        failure_limit=settings.failure_limit if said.failure_limit is None else said.failure_limit,
        allow_kinds=said.allow_kinds,
        allow_texts=said.allow_texts,
    )


def rule_of_app(app: str, metric: WatchedMetric, settings: RuleSettings) -> Rule | None:
    """The same for an application on the whole, whatever environment and model."""
    return rule_for(Series(app, "", metric.name, "", "", ""), metric, settings)


def rule_anywhere(metric: WatchedMetric, settings: RuleSettings) -> Rule | None:
    """The same for every application alike: what settings say of one app or segment is left out."""
    return rule_of_app("", metric, settings)


def coverage_rule_for(series: Series, metric: WatchedMetric, settings: RuleSettings) -> Rule | None:
    """The rule on how many records got a score at all: one per evaluator, on its first primary metric, on the whole."""
    said, settings = _said(series, settings), settings.of(series.app)
    if not stands_for_evaluator(metric) or series.segment or not said.enabled:
        return None
    return Rule(
        kind="coverage",
        watched=metric,
        least=None,
        greatest=None,
        limit=settings.coverage_limit,
        min_sample=said.min_sample or settings.min_sample,
        k=said.k or settings.k,
        m=said.m or settings.m,
        resolve_after=said.resolve_after or settings.resolve_after,
        severity=None,
    )


def rules_for(series: Series, metric: WatchedMetric, settings: RuleSettings) -> tuple[Rule, ...]:
    """The rules on the metric's level and on its coverage, as far as they watch the series."""
    both = (rule_for(series, metric, settings), coverage_rule_for(series, metric, settings))
    return tuple(rule for rule in both if rule is not None)


def stands_for_evaluator(metric: WatchedMetric) -> bool:
    """Whether coverage of its evaluator is told of this metric: the first primary one."""
    return metric.metric is next((one for one in metric.evaluator.metrics if one.primary), None)


def loosest_any_rules(metrics: Mapping[str, WatchedMetric], settings: RuleSettings) -> list[Rule]:
    """A rule for each metric that rule `any` may watch in some series: what breaches there breaches this one."""
    found = []
    primary_only = all(one.primary_only for one in (settings, *map(settings.of, settings.apps)))
    for metric in metrics.values():
        said = [one for one in settings.overrides if one.metric == metric.name]
        kinds = {metric.evaluator.rule_of(metric.metric), *(one.rule for one in said)}
        if "any" not in kinds or (primary_only and not metric.metric.primary and not said):
            continue
        spec, higher = metric.metric, metric.metric.better == "higher"
        leasts = [spec.threshold if higher else None, *(one.min for one in said)]
        greatests = [None if higher else spec.threshold, *(one.max for one in said)]
        least = max((line for line in leasts if line is not None), default=None)
        greatest = min((line for line in greatests if line is not None), default=None)
        if least is not None or greatest is not None:
            found.append(
                Rule("any", metric, least, greatest, 0.0, min_sample=1, k=1, m=1, resolve_after=1, severity=None)
            )
    return found


def check(settings: RuleSettings, evaluators: Mapping[str, Evaluator]) -> None:
    """Raise ConfigError where a rule names a metric or evaluator that is none, or says what can never hold."""
    metrics = metrics_by_name(evaluators)
    for said in settings.overrides:
        metric = metrics.get(said.metric)
        if metric is None:
            raise ConfigError(f"rules.overrides: no metric {said.metric!r}{_known(said.metric, metrics)}")
        spec, of_window = metric.metric, metric.evaluator.combine is not None
        if said.rule is not None and of_window != (said.rule == "value"):
            kind = "whole windows, which rule value judges" if of_window else "records, which rule value does not judge"
            raise ConfigError(f"rules.overrides: rule = {said.rule!r} of {said.metric}: it is a metric of {kind}")
        for name, line in (("min", said.min), ("max", said.max)):
            if line is not None and not spec.low <= line <= spec.high:
                raise ConfigError(
                    f"rules.overrides: {name} = {line} of {said.metric} is outside its range [{spec.low}, {spec.high}]"
                )
        if said.min is not None and said.max is not None and said.min > said.max:
            raise ConfigError(f"rules.overrides: min {said.min} of {said.metric} is above max {said.max}")
        if said.enabled and spec.threshold is None and said.min is None and said.max is None:
            raise ConfigError(
                f"rules.overrides: {said.metric} has no threshold of its own; give min or max, or enabled = false"
            )
    for limit in settings.limits:
        if limit.evaluator is not None and limit.evaluator not in evaluators:
            raise ConfigError(f"rules.limits: no evaluator {limit.evaluator!r}{_known(limit.evaluator, evaluators)}")
    for objective in settings.objectives:
        _check_objective(objective, metrics)


def _check_objective(objective: Objective, metrics: Mapping[str, WatchedMetric]) -> None:
    where, metric = f"rules.objectives: {objective.name}", metrics.get(objective.metric)
    if metric is None or metric.evaluator.combine is not None:
        of_records = [name for name, one in metrics.items() if one.evaluator.combine is None]
        raise ConfigError(f"{where}: no metric of records {objective.metric!r}{_known(objective.metric, of_records)}")
    spec, lines = metric.metric, objective.lines(metric.metric)
    given = [line for line in lines if line is not None]
    if not given:
        raise ConfigError(f"{where}: {objective.metric} has no threshold of its own; give min or max")
    if any(not spec.low <= line <= spec.high for line in given):
        raise ConfigError(f"{where}: min or max is outside the range of {objective.metric}, [{spec.low}, {spec.high}]")
    if len(given) == 2 and given[0] > given[1]:
        raise ConfigError(f"{where}: min {given[0]} is above max {given[1]}")


def _known(wrong: str, names: Collection[str]) -> str:
    """What follows a name that is none: the nearest one, and those of its evaluator, or the evaluators there are."""
    own = [name for name in names if name.startswith(f"{wrong.partition('.')[0]}.")]
    near = difflib.get_close_matches(wrong, names, n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return f"{meant} (known: {', '.join(own or sorted({name.partition('.')[0] for name in names}))})"


_NOTHING = RuleOverride(metric="")


def _said(series: Series, settings: RuleSettings) -> RuleOverride:
    """All overrides that fit, laid over one another, the most specific on top."""
    fitting = [said for said in settings.overrides if _fits(said, series)]
    if not fitting:
        return _NOTHING
    laid: dict[str, object] = {"metric": series.metric}
    for said in sorted(fitting, key=_specific):
        fields: Sequence[str] = sorted(said.model_fields_set)
        laid |= {name: getattr(said, name) for name in fields if name not in ("app", "segment", "segment_value")}
    return RuleOverride.model_validate(laid)


def _fits(said: RuleOverride, series: Series) -> bool:
    return (
        said.metric == series.metric
        and said.app in (None, series.app)
        and said.segment in (None, series.segment)
        and said.segment_value in (None, series.segment_value)
    )


def _specific(said: RuleOverride) -> int:
    return sum(selector is not None for selector in (said.app, said.segment, said.segment_value))
