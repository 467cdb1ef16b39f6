"""Which evaluators run here, with which parameters, on which tasks: settings made definite before the first record."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from evaluators.encoder import Encoder, what_is_missing
from evaluators.errors import ConfigError
from evaluators.fingerprint import fingerprint
from evaluators.settings import EncoderSettings, EvaluatorSettings
from evaluators.spec import Evaluator, Lane, Need
from evaluators.trace import Trace

DEFAULT_TASK = "question_answering"  # of a trace that names none


@dataclass(frozen=True, slots=True)
class Prepared:
    """An evaluator ready to run."""

    evaluator: Evaluator
    params: BaseModel
    fingerprint: str
    tasks: tuple[str, ...]  # empty: every task

    def selects(self, trace: Trace) -> bool:
        """Whether the trace's task is one of this evaluator's; where it is not, the trace leaves no row."""
        return not self.tasks or (trace.task or DEFAULT_TASK) in self.tasks


@dataclass(frozen=True, slots=True)
class Plan:
    """What runs, sorted by id, and what would if its resources were there: id to a reason that says what to install."""

    prepared: tuple[Prepared, ...]
    unavailable: Mapping[str, str]


def prepare(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, lane: Lane | None, encoder: Encoder | None
) -> Plan:
    """The plan of one lane (of all, if None).

    Raises `ConfigError` for an unknown id or parameter, a bad value, and for an evaluator enabled by name that cannot
    run. Those that are on by default and cannot run are listed as unavailable, and the rest work.
    """
    check_names(registry, settings)
    prepared: list[Prepared] = []
    unavailable: dict[str, str] = {}
    for evaluator in registry.values():
        params = parameters(evaluator, settings)  # a typo is an error in every lane, also where it is not used
        if not is_on(evaluator, settings) or (lane is not None and evaluator.lane != lane):
            continue
        reason = why_unavailable(evaluator, settings.encoder, encoder)
        if reason is None:
            revision = encoder.revision if encoder else None
            tasks = tasks_of(evaluator, settings)
            prepared.append(Prepared(evaluator, params, fingerprint(evaluator, params, revision), tasks))
        elif settings.enabled is not None:
            raise ConfigError(f"evaluators.enabled names {evaluator.id!r}, which cannot run: {reason}")
        else:
            unavailable[evaluator.id] = reason
    return Plan(tuple(prepared), MappingProxyType(unavailable))


def needs_encoder(registry: Mapping[str, Evaluator], settings: EvaluatorSettings, lane: Lane | None) -> bool:
    """Whether anything that would run in the lane embeds texts: only then is loading an encoder worth its memory."""
    return any(
        Need.EMBEDDING in evaluator.needs and is_on(evaluator, settings) and lane in (None, evaluator.lane)
        for evaluator in registry.values()
    )


def why_unavailable(evaluator: Evaluator, settings: EncoderSettings, encoder: Encoder | None) -> str | None:
    """Why the evaluator cannot run, with what to install; None where it can."""
    if missing := missing_extra(evaluator):
        return missing
    others = sorted(evaluator.needs - {Need.EMBEDDING})
    if others:
        return f"this version of ragwatch has no {' or '.join(others)} resource"
    if Need.EMBEDDING in evaluator.needs and encoder is None:
        return what_is_missing(settings) or "the encoder was not loaded"
    return None


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
    return f"{where}: {'there is no such parameter' if fault['type'] == 'extra_forbidden' else fault['msg']}"
