"""Reads weights of TensorFlow models of transformers (tf_model.h5), without TensorFlow."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.errors import ConfigError, Unavailable

WEIGHTS = "tf_model.h5"
FAMILIES = ("bert", "distilbert")  # whose tensors are known to come out under the right names

Tensor = npt.NDArray[np.float32]
_NUMBERED = re.compile(r"_\._(?=\d)")  # layer_._0: one of a list
_RENAMED = {"kernel": "weight", "gamma": "weight", "embeddings": "weight", "beta": "bias"}


def tensors_of(folder: Path) -> Mapping[str, Tensor]:
    """Return the tensors with the names and the orientation of safetensors of the same model.

    Raises `ConfigError` for a file with other content, `Unavailable` if h5py is not installed.
    """
    try:
        import h5py
    except ImportError as error:
        raise Unavailable(f"{folder / WEIGHTS} is read with h5py: pip install 'ragtide[models]'") from error
    _check(folder)
    tensors: dict[str, Tensor] = {}
    left = (folder / WEIGHTS).stat().st_size

    def take(path: str, held: Any) -> None:
        nonlocal left
        if not isinstance(held, h5py.Dataset):
            return
        left -= held.nbytes
        # a small file may claim to hold much, or point to other files
        if left < 0 or held.dtype.kind != "f" or held.external or held.is_virtual:
            raise ValueError(path)
        name, turned = tensor_name(path)
        values = held[()].astype(np.float32)
        tensors[name] = np.ascontiguousarray(values.T if turned else values)

    try:
        with h5py.File(folder / WEIGHTS, "r") as file:
            file.visititems(take)  # it follows no links
    except (OSError, ValueError, RuntimeError, KeyError, IndexError) as error:
        raise ConfigError(f"{folder / WEIGHTS} holds more than a model's weights, or is incomplete") from error
    return tensors


def tensor_name(path: str) -> tuple[str, bool]:
    """Return the tensor's name in safetensors, and whether it is transposed there.

    A path is "layer/model/part/.../kind:0", where layer is the outermost part of the model.
    """
    *parts, kind = _NUMBERED.sub("/", path.removesuffix(":0")).split("/")[2:]
    return ".".join((*parts, _RENAMED.get(kind, kind))), kind == "kernel"


def _check(folder: Path) -> None:
    family = json.loads((folder / "config.json").read_text("utf-8")).get("model_type")
    if family not in FAMILIES:
        raise ConfigError(
            f"{folder / WEIGHTS} is of a {family}; weights of TensorFlow are read for {' and '.join(FAMILIES)} only"
        )
