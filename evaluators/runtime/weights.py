"""Maps the float tensors of a safetensors file, without reading it into memory."""

import json
import mmap
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.spec import Vectors

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_BASE = re.compile(r"^(?:bert|distilbert|roberta)\.")  # before the names of a transformer that has a head


class Weights:
    """The tensors of a safetensors file, memory-mapped: read on access, dropped by `release`."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            start = 8 + int.from_bytes(self._map[:8], "little")
            header = json.loads(self._map[8:start])
            self._tensors = {
                _BASE.sub("", name): self._tensor(entry, start)
                for name, entry in header.items()
                if name != "__metadata__" and entry["dtype"] in _DTYPES
            }
        except (OSError, ValueError, KeyError) as error:
            raise ConfigError(
                f"{path} is missing or no complete safetensors file ({type(error).__name__}): fetch the model again, "
                "or set its backend to the one on torch"
            ) from error

    def __getitem__(self, name: str) -> Vectors:
        if name not in self._tensors:
            raise ConfigError(f"the model's weights have no float tensor {name!r}; is it of the BERT family?")
        values = self._tensors[name]
        if values.dtype == _DTYPES["BF16"]:  # the upper half of a float32
            values = (values.astype("<u4") << 16).view("<f4")
        return values.astype(np.float32, copy=False)

    def release(self) -> None:
        """Release the memory of all pages read so far. They are read again on access."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def _tensor(self, entry: Mapping[str, Any], start: int) -> npt.NDArray[Any]:
        first, last = entry["data_offsets"]
        dtype = _DTYPES[entry["dtype"]]
        values: npt.NDArray[Any] = np.frombuffer(self._map, dtype, (last - first) // dtype.itemsize, start + first)
        return values.reshape(entry["shape"])
