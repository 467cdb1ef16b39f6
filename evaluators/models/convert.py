"""Converts weights in other formats to safetensors. Reads tensors only, never code."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.models import tensorflow

PICKLED = "pytorch_model.bin"
FORMATS = (PICKLED, tensorflow.WEIGHTS)  # the first that is there is taken
_SAFE = "model.safetensors"

Save = Callable[[Path], None]


def convert_weights(folder: Path) -> Path:
    """Write the folder's weights as safetensors beside the original file, atomically.

    Raises `ConfigError` for a file with more than named tensors, `Unavailable` if the reader is not installed.
    """
    if (folder / _SAFE).is_file():
        return folder / _SAFE
    save = _of_pickle(folder / PICKLED) if (folder / PICKLED).is_file() else _of_tensorflow(folder)
    written = folder / f"{_SAFE}.{os.getpid()}"
    try:
        save(written)
        written.replace(folder / _SAFE)
    finally:
        written.unlink(missing_ok=True)
    return folder / _SAFE


def _of_pickle(path: Path) -> Save:
    try:
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        raise Unavailable(f"{path} is read with torch: pip install 'ragtide[models]'") from error
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
        tensors = {name: tensor.clone().contiguous() for name, tensor in held.items()}  # a copy: some share memory
    except Exception as error:  # of a strange file torch raises whatever it trips over
        raise ConfigError(f"{path} holds more than tensors, or is incomplete; it was not read") from error
    return partial(save_file, tensors, metadata={"format": "pt"})


def _of_tensorflow(folder: Path) -> Save:
    tensors = tensorflow.tensors_of(folder)
    from safetensors.numpy import save_file

    return partial(save_file, dict(tensors), metadata={"format": "pt"})
