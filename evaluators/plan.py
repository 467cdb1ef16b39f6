"""Resolves settings before the first record: which evaluators run, with which parameters, on which tasks."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ValidationError

from ragtide.evaluators.companions import check_companions, companion_of
from ragtide.evaluators.encoder import Encoder, Encoders, what_is_missing
from ragtide.evaluators.encoder.model import model_of
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.judge.prompt_files import check_prompts, judge_revision
from ragtide.evaluators.judge.settings import NO_ENDPOINT, JudgeSettings
from ragtide.evaluators.models import Models
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import SHARED, Evaluator, Lane, ModelRef, Need
from ragtide.evaluators.trace import Trace

NO_MODELS = Models()
NO_ENCODERS = Encoders()
DEFAULT_TASK = "question_answering"  # of a trace without one


@dataclass(frozen=True, slots=True)
class PreparedEvaluator:
    """An evaluator with its parameters, ready to run."""

    evaluator: Evaluator
    params: BaseModel
    fingerprint: str
    tasks: tuple[str, ...]  # empty: every task
    encoder: str = SHARED  # for its embeddings, if it has any

    def selects(self, trace: Trace) -> bool:
        """Whether the evaluator runs on the trace's task. If not, the trace gets no row."""
        return not self.tasks or (trace.task or DEFAULT_TASK) in self.tasks


@dataclass(frozen=True, slots=True)
class Plan:
    """Evaluators that run, sorted by id, and unavailable ones with the reason, which says what to install."""

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
    """Make the plan of one lane, or of all lanes if None.

    Raises `ConfigError` for an unknown id or parameter, a bad value, and an evaluator that is enabled by name but
    cannot run. Evaluators that are on by default but cannot run are listed as unavailable.
    """
    check_names(registry, settings)
    check_companions(registry, settings)
    check_prompts(settings.judge)
    prepared: list[PreparedEvaluator] = []
    unavailable: dict[str, str] = {}
    for evaluator in registry.values():
        params = parameters(evaluator, settings)  # a typo is an error in every lane
        check_search(evaluator, params, settings)
        if not is_on(evaluator, settings) or lane not in (None, evaluator.lane):
            continue
        refs, name = models_of(evaluator, params), encoder_of(evaluator, params, settings)
        own = encoder if name == SHARED else encoders.loaded.get(name or "")
        no_encoder = None if name is None or own else _absence(name, encoders, settings)
        reason = why_unavailable(evaluator, no_encoder, settings.judge) or _first_missing(refs, models)
        if reason is None:
            revisions = [
                *(models.loaded[ref].revision for ref in refs),
                *judge_revisions(evaluator, params, settings.judge),
            ]
            version_hash = fingerprint(evaluator, params, own.revision if own else None, revisions)
            prepared.append(
                PreparedEvaluator(evaluator, params, version_hash, tasks_of(evaluator, settings), name or SHARED)
            )
        elif settings.enabled is not None:
            raise ConfigError(f"evaluators.enabled names {evaluator.id!r}, which cannot run: {reason}")
        else:
            unavailable[evaluator.id] = reason
    return Plan(tuple(prepared), MappingProxyType(unavailable))


def only_companions(
    registry: Mapping[str, Evaluator],
    settings: EvaluatorSettings,
    lane: Lane | None,
    is_sampled: Callable[[Evaluator], bool],
    more: Iterable[str] = (),
) -> EvaluatorSettings:
    """Restrict the settings to the companions of sampled judges of the lane, and to the evaluators of `more` metrics.

    If a companion cannot run, it is unavailable, also where `enabled` does not name it.
    """
    judges = [one for one in registry.values() if one.judge is not None and is_on(one, settings) and is_sampled(one)]
    names = {
        companion_of(one, metric, settings) or ""
        for one in judges
        if lane in (None, one.lane)
        for metric in one.metrics
    }
    wanted = {name.rpartition(".")[0] for name in (*names, *(more if names else ()))}
    others = (id for id in registry if id not in wanted)
    return settings.model_copy(update={"enabled": None, "disabled": (*settings.disabled, *others)})


def wanted_encoders(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, lane: Lane | None
) -> tuple[str, ...]:
    """Return the encoders of the evaluators that would run in the lane, each once. No others need to be loaded.

    Raises `ConfigError` like `parameters`.
    """
    names = (
        encoder_of(evaluator, parameters(evaluator, settings), settings)
        for evaluator in _installed(registry, settings, lane)
    )
    return tuple(dict.fromkeys(name for name in names if name is not None))


def encoder_of(evaluator: Evaluator, params: BaseModel, settings: EvaluatorSettings) -> str | None:
    """Return its encoder: `SHARED` (also if its own is the same model), a model of its own, or None."""
    name = evaluator.encoder_of(params)
    if name is None or name == SHARED:
        return name
    return SHARED if name in (settings.encoder.model, model_of(settings.encoder)) else name


def wanted_models(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, lane: Lane | None
) -> tuple[ModelRef, ...]:
    """Return the models of the evaluators that would run in the lane, each once. Raises like `parameters`."""
    return tuple(
        dict.fromkeys(
            ref
            for evaluator in _installed(registry, settings, lane)
            for ref in models_of(evaluator, parameters(evaluator, settings))
        )
    )


def _installed(
    registry: Mapping[str, Evaluator], settings: EvaluatorSettings, lane: Lane | None
) -> Iterator[Evaluator]:
    """Yield the enabled evaluators of the lane whose extras are installed."""
    for evaluator in registry.values():
        if is_on(evaluator, settings) and lane in (None, evaluator.lane) and missing_extra(evaluator) is None:
            yield evaluator


def models_of(evaluator: Evaluator, params: BaseModel) -> tuple[ModelRef, ...]:
    """Return the evaluator's models for these parameters, without the encoder."""
    return tuple(evaluator.models(params)) if evaluator.models else ()


def _absence(name: str, encoders: Encoders, settings: EvaluatorSettings) -> str:
    reason = what_is_missing(settings.encoder) if name == SHARED else encoders.missing.get(name)
    return reason or f"the encoder {name} was not loaded"


def _first_missing(refs: Iterable[ModelRef], models: Models) -> str | None:
    absent = (ref for ref in refs if ref not in models.loaded)
    return next((models.missing.get(ref, f"the model {ref.name} was not loaded") for ref in absent), None)


def judge_revisions(evaluator: Evaluator, params: BaseModel, judge: JudgeSettings) -> list[str]:
    """Return the revision of the judge, the prompts and the search of an evaluator that asks one."""
    use = evaluator.judge
    return [judge_revision(evaluator.id, use.prompts, use.searches(params), judge)] if use else []


def why_unavailable(evaluator: Evaluator, no_encoder: str | None, judge: JudgeSettings) -> str | None:
    """Return why the evaluator cannot run, apart from its models, and what to install. None if it can.

    `no_encoder` is the reason that its encoder is missing, or None.
    """
    if missing := missing_extra(evaluator):
        return missing
    if Need.JUDGE in evaluator.needs and not judge.endpoints:
        return NO_ENDPOINT
    return no_encoder


def missing_extra(evaluator: Evaluator) -> str | None:
    """Return which modules of its extra are not installed, and how to install them. None if all are."""
    extra = evaluator.extra
    missing = [module for module in extra.modules if find_spec(module) is None] if extra else []
    return f"{' and '.join(missing)} not installed: pip install '{extra.install}'" if extra and missing else None


def is_on(evaluator: Evaluator, settings: EvaluatorSettings) -> bool:
    """Whether settings let it run: not disabled, and enabled. By default all are that are configured."""
    if evaluator.id in settings.disabled:
        return False
    return is_configured(evaluator, settings) if settings.enabled is None else evaluator.id in settings.enabled


def is_configured(evaluator: Evaluator, settings: EvaluatorSettings) -> bool:
    """Whether settings give what it is off by default without: one of some parameters, an endpoint for a judge.

    An agent needs an endpoint of its own: it costs more than other judges, and may send what users wrote to a search
    engine.
    """
    if Need.JUDGE in evaluator.needs and not settings.judge.endpoints:
        return False
    if evaluator.method == "agent" and evaluator.id not in settings.judge.endpoint_by_evaluator:
        return False
    given = settings.params.get(evaluator.id, {})
    return not evaluator.off_until_set or any(name in given for name in evaluator.off_until_set)


def tasks_of(evaluator: Evaluator, settings: EvaluatorSettings) -> tuple[str, ...]:
    """Return the tasks that it runs on. Empty means every task."""
    tasks = settings.tasks.get(evaluator.id, evaluator.tasks)
    return () if "*" in tasks else tuple(tasks)


def parameters(evaluator: Evaluator, settings: EvaluatorSettings) -> BaseModel:
    """Return its parameters: settings over defaults. Raises `ConfigError` with the valid names and values."""
    given = settings.params.get(evaluator.id, {})
    try:
        return evaluator.params.model_validate(given)
    except ValidationError as error:
        valid = ", ".join(evaluator.params.model_fields) or "none: it has no parameters"
        faults = "; ".join(_fault(evaluator.id, dict(fault)) for fault in error.errors(include_input=False))
        raise ConfigError(f"{faults} (parameters of {evaluator.id}: {valid})") from error


def check_settings(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> None:
    """Raise `ConfigError` if settings name an unknown evaluator or parameter, or have a bad value."""
    check_names(registry, settings)
    check_companions(registry, settings)
    for evaluator in registry.values():
        if evaluator.id in settings.params or evaluator.judge is not None:
            check_search(evaluator, parameters(evaluator, settings), settings)
    check_prompts(settings.judge)


def check_search(evaluator: Evaluator, params: BaseModel, settings: EvaluatorSettings) -> None:
    """Raise `ConfigError` if the evaluator is on and searches, and there is no search endpoint."""
    if (missing := missing_search(evaluator, params, settings)) is not None:
        raise ConfigError(missing)


def missing_search(evaluator: Evaluator, params: BaseModel, settings: EvaluatorSettings) -> str | None:
    """Return what to set if the evaluator is on and searches, and there is no search endpoint. Else None."""
    use = evaluator.judge
    if not use or settings.judge.search.url is not None or not use.searches(params) or not is_on(evaluator, settings):
        return None
    return (
        f"evaluators.params.{evaluator.id}.tools has search, but no search endpoint is set: set "
        'evaluators.judge.search.url, or leave search out of the tools ("calculator" alone is valid)'
    )


def check_names(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> None:
    """Raise `ConfigError` if settings name an unknown evaluator."""
    places: dict[str, Iterable[str]] = {
        "enabled": settings.enabled or (),
        "disabled": settings.disabled,
        "params": settings.params,
        "tasks": settings.tasks,
        "judge.endpoint_by_evaluator": settings.judge.endpoint_by_evaluator,
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
    message = fault["msg"].removeprefix("Value error, ")
    return f"{where}: {'there is no such parameter' if fault['type'] == 'extra_forbidden' else message}"
