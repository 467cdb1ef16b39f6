"""All that can be told of an evaluator without running it: the table and the JSON of `ragtide evaluators`."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from pydantic import BaseModel

from ragtide.evaluators import models
from ragtide.evaluators.encoder import Encoder, revision_of, settings_of_other, what_is_missing
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.plan import check_names, encoder_of, is_on, models_of, parameters, tasks_of, why_unavailable
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import SHARED, Better, Budget, Domain, Evaluator, Lane, Method, Metric, RuleKind


@dataclass(frozen=True, slots=True)
class ParamInfo:
    """One parameter: `default` is the evaluator's own, `value` what settings make of it; an end of None is open.

    `choices` are the words that it takes, or that a list of it takes.
    """

    name: str
    description: str
    default: Any
    value: Any
    range: tuple[float | None, float | None] | None
    choices: tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """One metric; an end of None is open."""

    key: str
    description: str
    unit: str | None
    range: tuple[float | None, float | None]
    better: Better
    threshold: float | None
    primary: bool
    optional: bool
    rule: RuleKind
    per: tuple[str, ...]  # of a window: one series for each combination of these


@dataclass(frozen=True, slots=True)
class EvaluatorInfo:
    """One evaluator. `inputs` must be recorded for it to apply; `also_reads` it looks at where they are; a record with
    more than `budget` is not applicable, and a limit of None is none.

    `available` says whether its resources are there (`reason`: what to install), `enabled` whether settings want it.
    `fingerprint` is None where it cannot be told, because a model that it depends on is not there.
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
    version: int
    fingerprint: str | None
    metrics: tuple[MetricInfo, ...]


def describe(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, encoder: Encoder | None = None
) -> list[EvaluatorInfo]:
    """Every evaluator, sorted by id, as these settings have it; loads no model but one whose int8 must be tried.

    Raises `ConfigError` as `prepare`.
    """
    check_names(registry, settings)
    told = cache(partial(_encoder, settings.encoder, encoder))
    return [_describe(evaluator, settings, told) for evaluator in registry.values()]


class _Encoder(NamedTuple):
    """What is missing before an encoder can be used, or its revision; neither of none."""

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
    """Why evaluators cannot run, by id, with what to install; hashes no weights and loads no model.

    Raises `ConfigError` as `prepare`.
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
    """Why the evaluator cannot run, None where it can."""
    absent = (models.what_is_missing(ref, settings) for ref in models_of(evaluator, params))
    return why_unavailable(evaluator, no_encoder) or next(filter(None, absent), None)


def in_words(budget: Budget) -> str:
    """Its limits: "at most 500,000 characters, 2,000 sentences"; "any length" where it has none."""
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
    told = reason is None or not (refs or evaluator.needs)
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
        version=evaluator.version,
        fingerprint=fingerprint(evaluator, params, revision, revisions) if told else None,
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
