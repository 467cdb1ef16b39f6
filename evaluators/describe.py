"""Describes evaluators without running them: the table and the JSON of `ragtide evaluators`."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from ragtide.evaluators import models
from ragtide.evaluators.encoder import Encoder, revision_of, settings_of_other, what_is_missing
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.plan import (
    check_names,
    encoder_of,
    is_configured,
    is_on,
    judge_revisions,
    missing_search,
    models_of,
    parameters,
    tasks_of,
    why_unavailable,
)
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import SHARED, Better, Budget, Domain, Evaluator, Lane, Method, Metric, RuleKind


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One parameter. `default` is that of the evaluator, `value` that of the settings. An end of None is open.

    `choices` are the valid values, or the valid members of a list.
    """

    name: str
    description: str
    default: Any
    value: Any
    range: tuple[float | None, float | None] | None
    choices: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """One metric. An end of None is open."""

    key: str
    description: str
    unit: str | None
    range: tuple[float | None, float | None]
    better: Better
    threshold: float | None
    primary: bool
    optional: bool
    rule: RuleKind
    per: tuple[str, ...]  # labels of a window metric: one series for each combination


@dataclass(frozen=True, slots=True)
class EvaluatorInfo:
    """One evaluator. `inputs` are required fields, `also_reads` optional ones. A record beyond `budget` is not
    applicable; a limit of None is no limit.

    `available` is whether its resources are installed (`reason` says what to install), `enabled` whether settings let
    it run. `configured` is whether settings give a parameter of `off_until_set`, if it has any, and the endpoint of an
    agent. `fingerprint` is None if a model that it depends on is missing.
    """

    id: str
    description: str
    domain: Domain
    method: Method
    lane: Lane
    tasks: tuple[str, ...]  # empty: every task
    inputs: tuple[str, ...]
    also_reads: tuple[str, ...]
    budget: Budget
    needs: tuple[str, ...]
    standards: tuple[str, ...]
    params: tuple[ParamInfo, ...]
    available: bool
    reason: str
    enabled: bool
    configured: bool
    off_until_set: tuple[str, ...]
    version: int
    fingerprint: str | None
    metrics: tuple[MetricInfo, ...]


def describe(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, encoder: Encoder | None = None
) -> list[EvaluatorInfo]:
    """Describe every evaluator with these settings, sorted by id. Loads no model, except to test its int8.

    Raises `ConfigError` like `prepare`.
    """
    check_names(registry, settings)
    encoder_info = cache(partial(_encoder, settings.encoder, encoder))
    return [_describe(evaluator, settings, encoder_info) for evaluator in registry.values()]


class _Encoder(NamedTuple):
    """What an encoder lacks, or its revision. Both are None without an encoder."""

    missing: str | None = None
    revision: str | None = None


def _encoder(settings: EncoderSettings, loaded: Encoder | None, name: str | None) -> _Encoder:
    if name is None:
        return _Encoder()
    if name == SHARED and loaded is not None:
        return _Encoder(revision=loaded.revision)
    own = settings if name == SHARED else settings_of_other(name, settings)
    missing = what_is_missing(own)
    return _Encoder(missing, None if missing else revision_of(own))


def unavailable(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> dict[str, str]:
    """Return why evaluators cannot run, by id, and what to install. Reads no weights and loads no model.

    Raises `ConfigError` like `prepare`.
    """
    check_names(registry, settings)
    absent = cache(
        lambda name: what_is_missing(settings.encoder if name == SHARED else settings_of_other(name, settings.encoder))
    )
    reasons = {}
    for evaluator in registry.values():
        params = parameters(evaluator, settings)
        name = encoder_of(evaluator, params, settings)
        reason = _reason(evaluator, params, settings, None if name is None else absent(name))
        if reason is not None:
            reasons[evaluator.id] = reason
    return reasons


def _reason(evaluator: Evaluator, params: BaseModel, settings: EvaluatorSettings, no_encoder: str | None) -> str | None:
    """Return why the evaluator cannot run, or None if it can."""
    absent = (models.what_is_missing(ref, settings) for ref in models_of(evaluator, params))
    return (
        why_unavailable(evaluator, no_encoder, settings.judge)
        or missing_search(evaluator, params, settings)
        or next(filter(None, absent), None)
    )


def setting_names(info: EvaluatorInfo) -> str:
    """Name the settings that it is off without: "evaluators.params.json_schema.json_schema". "" if there are none."""
    names = [f"evaluators.params.{info.id}.{name}" for name in info.off_until_set]
    names += [f"evaluators.judge.endpoint_by_evaluator.{info.id}"] if info.method == "agent" else []
    return " or ".join(names)


def describe_budget(budget: Budget) -> str:
    """Render the limits: "at most 500,000 characters, 2,000 sentences", or "any length"."""
    limits = {
        "characters": budget.characters,
        "items": budget.items,
        "tokens": budget.tokens,
        "sentences": budget.sentences,
        "regions expected or predicted": budget.regions,
    }
    given = ", ".join(f"{most:,} {unit}" for unit, most in limits.items() if most is not None)
    return f"at most {given}" if given else "any length"


def _describe(
    evaluator: Evaluator, settings: EvaluatorSettings, encoder: Callable[[str | None], _Encoder]
) -> EvaluatorInfo:
    params = parameters(evaluator, settings)
    no_encoder, revision = encoder(encoder_of(evaluator, params, settings))
    refs = models_of(evaluator, params)
    reason = _reason(evaluator, params, settings, no_encoder)
    revisions = [models.revision_of(ref, settings) for ref in refs] if reason is None else []
    revisions += judge_revisions(evaluator, params, settings.judge) if reason is None else []
    is_known = reason is None or not (refs or evaluator.needs)
    return EvaluatorInfo(
        id=evaluator.id,
        description=evaluator.description,
        domain=evaluator.domain,
        method=evaluator.method,
        lane=evaluator.lane,
        tasks=tasks_of(evaluator, settings),
        inputs=evaluator.required,
        also_reads=tuple(name for name in evaluator.inputs.__dataclass_fields__ if name not in evaluator.required),
        budget=evaluator.budget,
        needs=tuple(sorted(evaluator.needs)),
        standards=evaluator.standards,
        params=_params(evaluator, params.model_dump(mode="json")),
        available=reason is None,
        reason=reason or "",
        enabled=is_on(evaluator, settings),
        configured=is_configured(evaluator, settings),
        off_until_set=evaluator.off_until_set,
        version=evaluator.version,
        fingerprint=fingerprint(evaluator, params, revision, revisions) if is_known else None,
        metrics=tuple(_metric(evaluator, metric) for metric in evaluator.metrics),
    )


def _metric(evaluator: Evaluator, metric: Metric) -> MetricInfo:
    return MetricInfo(
        key=metric.key,
        description=metric.description,
        unit=metric.unit,
        range=(_finite(metric.low), _finite(metric.high)),
        better=metric.better,
        threshold=metric.threshold,
        primary=metric.primary,
        optional=metric.optional,
        rule=evaluator.rule_of(metric),
        per=metric.per,
    )


def _params(evaluator: Evaluator, values: Mapping[str, Any]) -> tuple[ParamInfo, ...]:
    defaults = evaluator.params().model_dump(mode="json")
    properties: Mapping[str, Any] = evaluator.params.model_json_schema().get("properties", {})
    return tuple(
        ParamInfo(
            name=name,
            description=schema.get("description", ""),
            default=defaults[name],
            value=values[name],
            range=_range(schema),
            choices=tuple(_choices(schema)) or None,
        )
        for name, schema in properties.items()
    )


def _range(schema: Mapping[str, Any]) -> tuple[float | None, float | None] | None:
    for branch in (schema, *schema.get("anyOf", ())):  # `float | None` has its limits in a branch
        low = branch.get("minimum", branch.get("exclusiveMinimum"))
        high = branch.get("maximum", branch.get("exclusiveMaximum"))
        if low is not None or high is not None:
            return low, high
    return None


def _choices(schema: Mapping[str, Any]) -> Iterator[Any]:
    if "const" in schema:
        yield schema["const"]
    yield from schema.get("enum", ())
    for part in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])):
        yield from _choices(part)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
