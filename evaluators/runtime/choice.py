"""Chooses the runtime of a model: int8 if allowed and within tolerance, else the fastest."""

import logging
from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from ragtide.evaluators.runtime.batches import BatchRunner
from ragtide.evaluators.runtime.fastest import fastest
from ragtide.evaluators.runtime.int8 import is_within_tolerance
from ragtide.evaluators.settings import EncoderSettings, ModelSettings
from ragtide.evaluators.spec import Vectors

_log = logging.getLogger(__name__)

Runtime = TypeVar("Runtime", bound=BatchRunner)


class Choice(NamedTuple, Generic[Runtime]):
    """A runtime and its backend."""

    backend: str
    runtime: Runtime


def choose_runtime(
    model: str,
    settings: EncoderSettings | ModelSettings,
    makers: Mapping[str, Callable[[], Runtime]],
    quantized: Callable[[], Runtime],
    longest: Callable[[Runtime], int],
    scores: Callable[[Runtime], Vectors],
) -> Choice[Runtime]:
    """Choose one of the backends in `makers`. With int8 it is `quantized`, of the backend onnx.

    `longest` returns the token limit of a runtime, `scores` its scores of the sample that int8 is tested on.
    """
    tolerance = settings.int8_tolerance
    if tolerance is not None and "onnx" in makers:
        in_int8 = quantized()
        if is_within_tolerance(model, tolerance, scores(makers["onnx"]()), scores(in_int8)):
            return Choice("onnx", in_int8)
    elif tolerance is not None:
        _log.warning("model %s runs in float: int8 needs the backend onnx, on the CPU", model)
    return Choice(*fastest(model, settings, makers, longest))
