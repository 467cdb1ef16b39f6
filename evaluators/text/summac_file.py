"""Reads the weights of SummaC-Conv from the file of its authors, without torch and without running pickled code."""

import pickle
import zipfile
from collections import OrderedDict
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.spec import Vectors
from ragtide.evaluators.text.summac import BINS, Convolution

_MOST_BYTES = 1_000_000  # of any entry: there are 28 numbers


def read_convolution(path: Path) -> Convolution:
    """Read a checkpoint of torch. Raises `ValueError` if it is not one with 23 bins."""
    try:
        with zipfile.ZipFile(path) as archive:
            tensors = _tensors(archive)
        slopes, constants = tensors["layer_final.weight"].sum(axis=1), tensors["layer_final.bias"]
        return Convolution(
            weights=tuple(tensors["mlp.weight"].reshape(-1).tolist()),
            bias=float(tensors["mlp.bias"].item()),
            slope=float(slopes[1] - slopes[0]),
            offset=float(constants[1] - constants[0]),
        )
    except Exception as error:  # whatever a damaged file makes of its reader
        raise ValueError(
            f"{path} is not SummaC-Conv's weights with {BINS} bins ({type(error).__name__}): "
            "fetch summac_conv_vitc_sent_perc_e.bin of tingofurro/summac again"
        ) from error


def _tensors(archive: zipfile.ZipFile) -> dict[str, npt.NDArray[np.float64]]:
    [pickled] = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    folder = pickled.removesuffix("data.pkl") + "data/"
    named = _Reader(BytesIO(_read(archive, pickled)), lambda key: _read(archive, folder + key)).load()
    return {name: tensor.astype(np.float64) for name, tensor in named.items()}


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > _MOST_BYTES:
        raise pickle.UnpicklingError("larger than 28 numbers are")
    return archive.read(name)


class _Reader(pickle.Unpickler):
    """Unpickles dictionaries of float tensors only."""

    def __init__(self, file: Any, read: Any) -> None:
        super().__init__(file)
        self._read = read

    def find_class(self, module: str, name: str) -> Any:
        known = {
            "collections.OrderedDict": OrderedDict,
            "torch._utils._rebuild_tensor_v2": _tensor,
            "torch.FloatStorage": np.dtype("<f4"),
        }
        return known[f"{module}.{name}"]

    def persistent_load(self, saved: Any) -> Vectors:
        _, dtype, key, *_ = saved
        numbers: Vectors = np.frombuffer(self._read(key), dtype)
        return numbers


def _tensor(storage: Vectors, start: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object) -> Vectors:
    tensor = storage[start : start + prod(shape)].reshape(shape)
    if tuple(stride // tensor.itemsize for stride in tensor.strides) != tuple(strides):
        raise pickle.UnpicklingError("a tensor that is not stored row by row")
    return tensor
