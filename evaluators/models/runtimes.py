"""What runs a classifier on this machine: int8 where that is allowed and holds, else what measures faster."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec

from evaluators.errors import ConfigError
from evaluators.models.fastest import fastest
from evaluators.models.files import ModelFiles
from evaluators.models.int8 import asks, within
from evaluators.models.labels import Labels
from evaluators.models.onnx_classifier import why_not
from evaluators.models.onnx_sequence import OnnxSequence
from evaluators.models.sequence import Backend, SequenceModel
from evaluators.models.torch_device import device_of
from evaluators.models.torch_sequence import TorchSequence
from evaluators.settings import ModelSettings
from evaluators.spec import Ask

_log = logging.getLogger(__name__)

_NEEDS = {"onnx": ("onnxruntime", "onnx", "tokenizers"), "torch": ("torch", "transformers")}
_EXTRA = {"onnx": "ragwatch[local]", "torch": "ragwatch[models]"}


def lacking(model: str, backend: str, why: str = "") -> str | None:
    """Which packages of a backend are not installed, and the command that installs them; None where none is."""
    packages = [name for name in _NEEDS[backend] if find_spec(name) is None]
    if not packages:
        return None
    reason = f" ({why})" if why else ""
    return f"{' and '.join(packages)} for the model {model} not installed: pip install '{_EXTRA[backend]}'{reason}"


def what_is_missing(files: ModelFiles, settings: ModelSettings) -> str | None:
    """What to install before a classifier whose files are here can run, None where nothing is missing.

    Raises `ConfigError` for one that can never run as set.
    """
    name = files.source.name
    graph_lacks = why_not(files, settings)
    if settings.backend == "onnx" and graph_lacks:
        raise ConfigError(
            f"the model {name} cannot run on the onnx backend: {graph_lacks}. "
            f"Leave evaluators.models.\"{name}\".backend unset (torch: pip install 'ragwatch[models]')"
        )
    if settings.backend != "auto":
        return lacking(name, settings.backend)
    return None if _able(files, settings) else lacking(name, "torch", graph_lacks or "")


def chosen(files: ModelFiles, revision: str, settings: ModelSettings, labels: Labels, pairs: bool) -> SequenceModel:
    """The classifier, ready to use, where `what_is_missing` says nothing. `pairs`: it is asked of two texts alone.

    Raises `ConfigError` for weights that give no numbers.
    """
    try:
        model = _chosen(files, revision, settings, labels, pairs)
        model.answer([("a",)])
    except FloatingPointError as error:
        raise ConfigError(f"the weights of the model {files.source.name} give numbers that are not finite") from error
    return model


def _chosen(files: ModelFiles, revision: str, settings: ModelSettings, labels: Labels, pairs: bool) -> SequenceModel:
    able = _able(files, settings)
    if len(able) > 1 and device_of(settings.device).type != "cpu":
        able = ["torch"]
    if settings.int8_tolerance is not None:
        if "onnx" not in able:
            _log.warning("model %s runs in float: int8 needs the backend onnx, on the CPU", revision)
        elif quantized := _int8(files, revision, settings, labels, asks(pairs)):
            return quantized
    makers: Mapping[str, Callable[[], Backend]] = {
        "torch": partial(TorchSequence, files, settings),
        "onnx": partial(OnnxSequence, files, settings),
    }
    _, backend = fastest(revision, settings, {one: makers[one] for one in able}, lambda one: one.pieces.max_tokens)
    return SequenceModel(revision, backend, labels)


def _able(files: ModelFiles, settings: ModelSettings) -> Sequence[str]:
    """The backends that can run it, as far as settings allow them."""
    allowed = ["torch", "onnx"] if settings.backend == "auto" else [settings.backend]
    installed = [backend for backend in allowed if lacking(files.source.name, backend) is None]
    return [backend for backend in installed if backend == "torch" or why_not(files, settings) is None]


def _int8(
    files: ModelFiles, revision: str, settings: ModelSettings, labels: Labels, sample: Sequence[Ask]
) -> SequenceModel | None:
    """The classifier in int8, None where one of its probabilities on the sample moves by more than is allowed."""
    exact = SequenceModel(revision, OnnxSequence(files, settings), labels)
    quantized = SequenceModel(f"{revision}+int8", OnnxSequence(files, settings, int8=True), labels)
    allowed = settings.int8_tolerance or 0.0
    return quantized if within(revision, allowed, exact.answer(sample), quantized.answer(sample)) else None
