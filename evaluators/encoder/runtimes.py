"""Loads the encoder on the fastest runtime of this machine."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ragtide.evaluators.encoder.model import EncoderFiles
from ragtide.evaluators.encoder.onnx_backend import OnnxBackend
from ragtide.evaluators.encoder.sentence import read
from ragtide.evaluators.encoder.torch_backend import TorchBackend
from ragtide.evaluators.encoder.windows import Backend, WindowedEncoder
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime import choice
from ragtide.evaluators.runtime.int8 import revision_with_int8, similarities
from ragtide.evaluators.runtime.int8_sample import TEXTS
from ragtide.evaluators.runtime.torch_device import device_of
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Vectors


def load_fastest(files: EncoderFiles, settings: EncoderSettings, backends: Sequence[str]) -> WindowedEncoder:
    """Load the encoder on one of the backends, which are all installed.

    Raises `ConfigError` if none can run it, or if its vectors are not finite.
    """
    makers: Mapping[str, Callable[[], Backend]] = {
        "sentence-transformers": partial(TorchBackend, files.folder, settings),
        "onnx": partial(OnnxBackend, files.folder, settings),
    }
    able = _candidates(files.folder, settings, backends)
    revision = revision_with_int8(
        files.revision, settings.int8_tolerance
    )  # reads the weights: after what is cheap to refuse

    def cosines(backend: Backend) -> Vectors:
        return similarities(WindowedEncoder(revision, backend, "").encode(TEXTS))

    name, backend = choice.choose_runtime(
        revision,
        settings,
        {one: makers[one] for one in able},
        partial(OnnxBackend, files.folder, settings, int8=True),
        lambda one: one.frame.max_tokens,
        cosines,
    )
    encoder = WindowedEncoder(revision, backend, name)
    if not np.isfinite(encoder.encode(["a"])).all():
        raise ConfigError(f"the weights of the encoder {files.name} give numbers that are not finite")
    return encoder


def _candidates(folder: Path, settings: EncoderSettings, backends: Sequence[str]) -> Sequence[str]:
    """Select the backends to measure: torch only on a GPU, and onnx only if its graph supports the architecture."""
    if "onnx" not in backends:
        return backends
    if len(backends) > 1 and device_of(settings.device).type != "cpu":
        return ["sentence-transformers"]
    try:
        read(folder)
    except ConfigError:
        if len(backends) == 1:
            raise
        return ["sentence-transformers"]
    return backends
