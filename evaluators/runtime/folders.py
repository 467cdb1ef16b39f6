"""Folders with a model's files: completeness and weights. Downloads nothing."""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ragtide.evaluators.runtime import hub

_CHUNK = 1 << 20


def cached_folder(name: str, revision: str | None = None) -> Path | None:
    """Return the folder in Hugging Face's cache with the complete model, or None."""
    folder = hub.snapshot(name, revision)
    return folder if folder and is_complete(folder) else None


def missing_model_message(name: str) -> str:
    """Say that a model is missing, and the command that fetches it."""
    return f"the model {name} is not here: ragtide models fetch {name}"


def is_complete(folder: Path) -> bool:
    """Whether configuration and all weights exist. An aborted download leaves only a part."""
    weights = weights_in(folder)
    return (folder / "config.json").is_file() and bool(weights) and all(path.is_file() for path in weights)


def weights_in(folder: Path) -> list[Path]:
    """Return the safetensors of the model: one file, or those of its index. [] if there are none."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file() or not index.is_file():
        return [single] if single.is_file() else []
    try:
        return sorted({folder / name for name in json.loads(index.read_text("utf-8"))["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # no index


def hash_of(paths: Sequence[Path]) -> str:
    """Return the SHA-256 of the concatenated files. An unchanged file is read once per process."""
    stats = [(path, path.stat()) for path in paths]
    return _hash(tuple((str(path.resolve()), stat.st_size, stat.st_mtime_ns) for path, stat in stats))


@lru_cache(maxsize=64)
def _hash(files: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in files:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def no_safetensors(place: str, names: Sequence[str]) -> str:
    """Say why weights in other formats are not loaded, and what to do."""
    others = sorted(name for name in names if name.endswith((".bin", ".h5", ".ckpt", ".pt", ".msgpack", ".pth")))
    found = f", only {' and '.join(others)}" if others else ""
    return (
        f"{place} has no model.safetensors{found}. Pickled weights can run code as they are read and those of "
        "TensorFlow no current transformers reads: convert them once where you trust them (load with transformers, "
        "then save_pretrained) and name the folder"
    )
