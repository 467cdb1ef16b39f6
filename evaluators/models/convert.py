"""Weights from a pickle to safetensors: tensors alone are read, nothing that a pickle could run."""

import os
from pathlib import Path

from evaluators.errors import ConfigError, Unavailable

PICKLED = "pytorch_model.bin"
_SAFE = "model.safetensors"


def converted(folder: Path) -> Path:
    """The folder's weights as safetensors, beside the pickle that they come from; there all at once or not at all.

    Raises `ConfigError` for a pickle that holds more than tensors by name, `Unavailable` where torch is missing.
    """
    if (folder / _SAFE).is_file():
        return folder / _SAFE
    try:
        import torch
        from safetensors.torch import save_file
    except ImportError as error:
        raise Unavailable(f"{folder / PICKLED} is read with torch: pip install 'ragwatch[models]'") from error
    try:
        held = torch.load(folder / PICKLED, map_location="cpu", weights_only=True)
        tensors = {name: tensor.clone().contiguous() for name, tensor in held.items()}  # a copy: some share memory
    except Exception as error:  # of a strange file torch raises whatever it trips over
        raise ConfigError(f"{folder / PICKLED} holds more than tensors, or is no whole file; it is not read") from error
    partial = folder / f"{_SAFE}.{os.getpid()}"
    try:
        save_file(tensors, partial, {"format": "pt"})
        partial.replace(folder / _SAFE)
    finally:
        partial.unlink(missing_ok=True)
    return folder / _SAFE
