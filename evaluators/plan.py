"""Which evaluators run here, with which parameters, on which tasks: settings made definite before the first record."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from ragtide.evaluators.encoder import Encoder, Encoders, what_is_missing
from ragtide.evaluators.encoder.model import model_of
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.models import Models
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import SHARED, Evaluator, Lane, ModelRef, Need
from ragtide.evaluators.trace import Trace

NO_MODELS = Models()
NO_ENCODERS = Encoders()
DEFAULT_TASK = "question_answering"  # of a trace that names none


@dataclass(frozen=True, slots=True)
class PreparedEvaluator:
    """An evaluator ready to run."""

    evaluator: Evaluator
    params: BaseModel
    fingerprint: str
    tasks: tuple[str, ...]  # empty: every task
    encoder: str = SHARED  # which it embeds by, if it does

    def selects(self, trace: Trace) -> bool:
        """Whether the trace's task is one of this evaluator's; where it is not, the trace leaves no row."""
        return not self.tasks or (trace.task or DEFAULT_TASK) in self.tasks


@dataclass(frozen=True, slots=True)
class Plan:
    """What runs, sorted by id, and what would if its resources were there: id to a reason that says what to install."""

    prepared: tuple[PreparedEvaluator, ...]
    unavailable: Mapping[str, str]


def prepare(
    registry: Mapping[str, Evaluator],
    settings: EvaluatorSettings,
    lane: Lane | None,
    encoder: Encoder | None,
    models: Models = NO_MODELS,
    encoders: Encoders = NO_ENCODERS,
) -> Plan:
    """The plan of one lane (of all, if None).

    Raises `ConfigError` for an unknown id or parameter, a bad value, and for an evaluator enabled by name that cannot
    run. Those that are on by default and cannot run are listed as unavailable, and the rest work.
    """
    check_names(registry, settings)
    prepared: list[PreparedEvaluator] = []
    unavailable: dict[str, str] = {}
    for evaluator in registry.values():
        params = parameters(evaluator, settings)  # a typo is an error in every lane, also where it is not used
        if not is_on(evaluator, settings) or (lane is not None and evaluator.lane != lane):
            continue
        refs, name = models_of(evaluator, params), encoder_of(evaluator, params, settings)
        own = encoder if name == SHARED else encoders.loaded.get(name or "")
        no_encoder = None if name is None or own else _absence(name, encoders, settings)
        reason = why_unavailable(evaluator, no_encoder) or _first_missing(refs, models)
        if reason is None:
            revisions = [models.loaded[ref].revision for ref in refs]
            mark = fingerprint(evaluator, params, own.revision if own else None, revisions)
            prepared.append(PreparedEvaluator(evaluator, params, mark, tasks_of(evaluator, settings), name or SHARED))
        elif settings.enabled is not None:
            raise ConfigError(f"evaluators.enabled names {evaluator.id!r}, which cannot run: {reason}")
        else:
            unavailable[evaluator.id] = reason
    return Plan(tuple(prepared), MappingProxyType(unavailable))


def wanted_encoders(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, lane: Lane | None
) -> tuple[str, ...]:
    """The encoders, each once, that what would run in the lane embeds by: loading another is not worth its memory.

    `SHARED` is one of them where anything embeds by it. Raises `ConfigError` as `parameters`.
    """
    named = (
        encoder_of(evaluator, parameters(evaluator, settings), settings)
        for evaluator in registry.values()
        if is_on(evaluator, settings) and lane in (None, evaluator.lane) and missing_extra(evaluator) is None
    )
    return tuple(dict.fromkeys(name for name in named if name is not None))


def encoder_of(evaluator: Evaluator, params: BaseModel, settings: EvaluatorSettings) -> str | None:
    """Which encoder it embeds by: `SHARED`, also where its own is the same; a model of its own; None for none."""
    name = evaluator.encoder_of(params)
    if name is None or name == SHARED:
        return name
    return SHARED if name in (settings.encoder.model, model_of(settings.encoder)) else name


def wanted_models(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, lane: Lane | None
) -> tuple[ModelRef, ...]:
    """The models that what would run in the lane asks, each once. Raises `ConfigError` as `parameters`."""
    return tuple(
        dict.fromkeys(
            ref
            for evaluator in registry.values()
            if is_on(evaluator, settings) and lane in (None, evaluator.lane) and missing_extra(evaluator) is None
            for ref in models_of(evaluator, parameters(evaluator, settings))
        )
    )


def models_of(evaluator: Evaluator, params: BaseModel) -> tuple[ModelRef, ...]:
    """The models that the evaluator asks with these parameters, the encoder aside."""
    return tuple(evaluator.models(params)) if evaluator.models else ()


def _absence(name: str, encoders: Encoders, settings: EvaluatorSettings) -> str:
    untold = f"the encoder {name} was not loaded"
    return (what_is_missing(settings.encoder) if name == SHARED else encoders.missing.get(name)) or untold


def _first_missing(refs: Iterable[ModelRef], models: Models) -> str | None:
    absent = (ref for ref in refs if ref not in models.loaded)
    return next((models.missing.get(ref, f"the model {ref.name} was not loaded") for ref in absent), None)


def why_unavailable(evaluator: Evaluator, no_encoder: str | None) -> str | None:
    """Why the evaluator cannot run whatever other models there are, with what to install; None where it can.

    `no_encoder` says why the encoder that it embeds by is not there, None where it is or none is needed.
    """
    if missing := missing_extra(evaluator):
        return missing
    if Need.JUDGE in evaluator.needs:
        return "this version of ragtide has no judge resource"
    return no_encoder


def missing_extra(evaluator: Evaluator) -> str | None:
    """Which modules of its extra are not installed, with what installs them; None where nothing is missing."""
    extra = evaluator.extra
    missing = [module for module in extra.modules if find_spec(module) is None] if extra else []
    return f"{' and '.join(missing)} not installed: pip install '{extra.install}'" if extra and missing else None


def is_on(evaluator: Evaluator, settings: EvaluatorSettings) -> bool:
    """Whether settings let it run: enabled (all are, unless some are named) and not disabled."""
    named = settings.enabled is None or evaluator.id in settings.enabled
    return named and evaluator.id not in settings.disabled


def tasks_of(evaluator: Evaluator, settings: EvaluatorSettings) -> tuple[str, ...]:
    """The tasks whose traces it looks at; empty means every task."""
    tasks = settings.tasks.get(evaluator.id, evaluator.tasks)
    return () if "*" in tasks else tuple(tasks)


def parameters(evaluator: Evaluator, settings: EvaluatorSettings) -> BaseModel:
    """Its parameters: the settings' over its own defaults. Raises `ConfigError` with the valid names and values."""
    given = settings.params.get(evaluator.id, {})
    try:
        return evaluator.params.model_validate(given)
    except ValidationError as error:
        valid = ", ".join(evaluator.params.model_fields) or "none: it has no parameters"
        faults = "; ".join(_fault(evaluator.id, dict(fault)) for fault in error.errors(include_input=False))
        raise ConfigError(f"{faults} (parameters of {evaluator.id}: {valid})") from error


def check_settings(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> None:
    """Raises `ConfigError` where settings name an evaluator or a parameter that does not exist, or give a bad value."""
    check_names(registry, settings)
    for id in settings.params:
        parameters(registry[id], settings)


def check_names(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> None:
    """Raises `ConfigError` where settings name an evaluator that does not exist."""
    places: dict[str, Iterable[str]] = {
        "enabled": settings.enabled or (),
        "disabled": settings.disabled,
        "params": settings.params,
        "tasks": settings.tasks,
    }
    for place, names in places.items():
        for name in names:
            if name not in registry:
                close = difflib.get_close_matches(name, registry, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ConfigError(
                    f"evaluators.{place}: there is no evaluator {name!r}{hint} (valid: {', '.join(sorted(registry))})"
                )


def _fault(id: str, fault: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in ("evaluators.params", id, *fault["loc"]))
    said = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {'there is no such parameter' if fault['type'] == 'extra_forbidden' else said}"
