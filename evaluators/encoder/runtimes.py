"""What runs the encoder on this machine: int8 where that is allowed and holds, else what measures faster."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from evaluators.encoder.model import ModelFiles
from evaluators.encoder.onnx_backend import OnnxBackend
from evaluators.encoder.sentence import read
from evaluators.encoder.torch_backend import TorchBackend
from evaluators.encoder.windows import Backend, WindowedEncoder
from evaluators.errors import ConfigError
from evaluators.models.fastest import fastest
from evaluators.models.int8 import similarities, within
from evaluators.models.int8_sample import TEXTS
from evaluators.models.torch_device import device_of
from evaluators.settings import EncoderSettings

_log = logging.getLogger(__name__)


def chosen(files: ModelFiles, settings: EncoderSettings, backends: Sequence[str]) -> WindowedEncoder:
    """The encoder on one of the backends, all of which are installed.

    Raises `ConfigError` where none can run it, and for weights that give no numbers.
    """
    encoder = _chosen(files, settings, backends)
    if not np.isfinite(encoder.encode(["a"])).all():
        raise ConfigError(f"the weights of the encoder {files.name} give numbers that are not finite")
    return encoder


def _chosen(files: ModelFiles, settings: EncoderSettings, backends: Sequence[str]) -> WindowedEncoder:
    folder = files.folder
    able = _able(folder, settings, backends)
    revision = files.revision  # reads the weights: after what is cheap to refuse
    if settings.int8_tolerance is not None:
        if "onnx" not in able:
            _log.warning("encoder %s runs in float: int8 needs the backend onnx, on the CPU", revision)
        elif quantized := _int8(folder, revision, settings, settings.int8_tolerance):
            return quantized
    makers: Mapping[str, Callable[[], Backend]] = {
        "sentence-transformers": partial(TorchBackend, folder, settings),
        "onnx": partial(OnnxBackend, folder, settings),
    }
    name, backend = fastest(revision, settings, {one: makers[one] for one in able}, lambda one: one.frame.max_tokens)
    return WindowedEncoder(revision, backend, name)


def _able(folder: Path, settings: EncoderSettings, backends: Sequence[str]) -> Sequence[str]:
    """Those worth a measurement: a GPU is torch's, and the graph does not cover every architecture."""
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


def _int8(folder: Path, revision: str, settings: EncoderSettings, tolerance: float) -> WindowedEncoder | None:
    """The encoder in int8, None where the cosine of some two texts of the sample moves by more."""
    exact = WindowedEncoder(revision, OnnxBackend(folder, settings), "onnx")
    quantized = WindowedEncoder(f"{revision}+int8", OnnxBackend(folder, settings, int8=True), "onnx")
    cosines = [similarities(encoder.encode(TEXTS)) for encoder in (exact, quantized)]
    return quantized if within(revision, tolerance, *cosines) else None
