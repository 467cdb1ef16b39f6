"""Adapts thresholds and default parameters of evaluators to their encoder."""

import logging
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, create_model

from ragtide.evaluators.encoder.model import model_of, name_of
from ragtide.evaluators.encoder.thresholds import ENCODER_THRESHOLDS
from ragtide.evaluators.plan import encoder_of, models_of, parameters
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import SHARED, Evaluator

log = logging.getLogger(__name__)


def with_encoder_thresholds(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> Mapping[str, Evaluator]:
    """Return the evaluators with the thresholds and default parameters of their encoder.

    Everything that evaluates rules or shows scores uses these, so that thresholds agree everywhere. An evaluator whose
    parameters name another model keeps its own. Settings override both. An encoder without measured thresholds leaves
    them as they are, with one warning. Raises `ConfigError` like `parameters`.
    """
    return MappingProxyType({id: _with_thresholds(evaluator, settings) for id, evaluator in registry.items()})


def _with_thresholds(evaluator: Evaluator, settings: EvaluatorSettings) -> Evaluator:
    given = parameters(evaluator, settings)
    own = encoder_of(evaluator, given, settings)
    if own is None or models_of(evaluator, given):
        return evaluator
    name = name_of(model_of(settings.encoder) if own == SHARED else own)
    if name not in ENCODER_THRESHOLDS:
        _warn(name)
        return evaluator
    lines = ENCODER_THRESHOLDS[name]
    metrics = tuple(
        replace(metric, threshold=lines.thresholds.get(f"{evaluator.id}.{metric.key}", metric.threshold))
        for metric in evaluator.metrics
    )
    defaults = lines.params.get(evaluator.id)
    params = _with_defaults(evaluator.params, defaults) if defaults else evaluator.params
    return replace(evaluator, metrics=metrics, params=params)


def _with_defaults(params: type[BaseModel], defaults: Mapping[str, float]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, default in defaults.items():
        field = copy(params.model_fields[name])
        field.default = default
        fields[name] = (field.annotation, field)
    return create_model(params.__name__, __base__=params, __doc__=params.__doc__, **fields)


@lru_cache(maxsize=16)
def _warn(name: str) -> None:
    log.warning(
        "no thresholds were measured for the encoder %s: using the defaults, which are meant for bge-small-en-v1.5; "
        "set others with rules.overrides and evaluators.params",
        name,
    )
