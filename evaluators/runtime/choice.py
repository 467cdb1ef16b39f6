"""What runs a model on this machine: int8 where that is allowed and holds, else what measures faster."""

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
    """A runtime, and the backend that it is of."""

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
    """One of the backends that `makers` names; in int8 it is the backend onnx's `quantized`.

    `longest` tells how many tokens a runtime reads at once, `scores` what it makes of the sample that int8 is tried on.
    """
    tolerance = settings.int8_tolerance
    if tolerance is not None and "onnx" in makers:
        tried = quantized()
        if is_within_tolerance(model, tolerance, scores(makers["onnx"]()), scores(tried)):
            return Choice("onnx", tried)
    elif tolerance is not None:
        _log.warning("model %s runs in float: int8 needs the backend onnx, on the CPU", model)
    return Choice(*fastest(model, settings, makers, longest))
