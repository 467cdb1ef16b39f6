"""Loads a classifier on the fastest runtime of this machine."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models.files import ModelFiles
from ragtide.evaluators.models.labels import Labels
from ragtide.evaluators.models.onnx_classifier import why_not
from ragtide.evaluators.models.onnx_sequence import OnnxSequence
from ragtide.evaluators.models.sequence import Backend, SequenceModel
from ragtide.evaluators.models.torch_sequence import TorchSequence
from ragtide.evaluators.runtime import choice
from ragtide.evaluators.runtime.int8 import asks
from ragtide.evaluators.runtime.packages import missing_packages
from ragtide.evaluators.runtime.torch_device import device_of
from ragtide.evaluators.settings import ModelSettings
from ragtide.evaluators.spec import Vectors


def what_is_missing(files: ModelFiles, settings: ModelSettings) -> str | None:
    """Return what to install before a classifier with local files can run, or None.

    Raises `ConfigError` for settings that can never work.
    """
    name = files.source.name
    graph_lacks = why_not(files, settings)
    if settings.backend == "onnx" and graph_lacks:
        raise ConfigError(
            f"the model {name} cannot run on the onnx backend: {graph_lacks}. "
            f"Leave evaluators.models.\"{name}\".backend unset (torch: pip install 'ragtide[models]')"
        )
    if settings.backend != "auto":
        return missing_packages(f"the model {name}", settings.backend)
    return None if _candidates(files, settings) else missing_packages(f"the model {name}", "torch", graph_lacks or "")


def load_fastest(
    files: ModelFiles, revision: str, settings: ModelSettings, labels: Labels, pairs: bool
) -> SequenceModel:
    """Load a classifier without faults in `what_is_missing`. With `pairs` it is asked only about pairs of texts.

    Raises `ConfigError` if its scores are not finite.
    """
    makers: Mapping[str, Callable[[], Backend]] = {
        "torch": partial(TorchSequence, files, settings),
        "onnx": partial(OnnxSequence, files, settings),
    }
    able = _candidates(files, settings)
    if len(able) > 1 and device_of(settings.device).type != "cpu":
        able = ["torch"]
    sample = asks(pairs)

    def answers(backend: Backend) -> Vectors:
        return SequenceModel(revision, backend, labels).answer(sample)

    try:
        _, backend = choice.choose_runtime(
            revision,
            settings,
            {one: makers[one] for one in able},
            partial(OnnxSequence, files, settings, int8=True),
            lambda one: one.pieces.max_tokens,
            answers,
        )
        model = SequenceModel(revision, backend, labels)
        model.answer([("a",)])
    except FloatingPointError as error:
        raise ConfigError(f"the weights of the model {files.source.name} give numbers that are not finite") from error
    return model


def _candidates(files: ModelFiles, settings: ModelSettings) -> Sequence[str]:
    """Return the backends that can run it, among those that settings allow."""
    allowed = ["torch", "onnx"] if settings.backend == "auto" else [settings.backend]
    installed = [backend for backend in allowed if missing_packages("", backend) is None]
    return [backend for backend in installed if backend == "torch" or why_not(files, settings) is None]
