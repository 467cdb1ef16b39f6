"""Folders with a model's files: whether they are whole, and which weights they hold. Downloads nothing."""

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from ragtide.evaluators import hub

_CHUNK = 1 << 20


def cached_folder(name: str, revision: str | None = None) -> Path | None:
    """The folder in Hugging Face's cache that holds all of the model's revision, None where there is none."""
    folder = hub.snapshot(name, revision)
    return folder if folder and is_whole(folder) else None


def not_here(name: str) -> str:
    """That a model is missing, with the command that fetches it."""
    return f"the model {name} is not here: ragtide models fetch {name}"


def is_whole(folder: Path) -> bool:
    """Whether configuration and all weights are there; a fetch that was broken off leaves a part of them."""
    weights = weights_in(folder)
    return (folder / "config.json").is_file() and bool(weights) and all(path.is_file() for path in weights)


def weights_in(folder: Path) -> list[Path]:
    """The safetensors that make up the model: one file, or those that its index names; [] where there are none."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file() or not index.is_file():
        return [single] if single.is_file() else []
    try:
        return sorted({folder / name for name in json.loads(index.read_text("utf-8"))["weight_map"].values()})
    except (ValueError, KeyError, TypeError, AttributeError):
        return []  # no index


def hash_of(paths: Sequence[Path]) -> str:
    """SHA-256 of the files' bytes, one after the other; a file that has not changed is read once per process."""
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
    """Why weights in other formats are not loaded, and what to do."""
    others = sorted(name for name in names if name.endswith((".bin", ".h5", ".ckpt", ".pt", ".msgpack", ".pth")))
    found = f", only {' and '.join(others)}" if others else ""
    return (
        f"{place} has no model.safetensors{found}. Pickled weights can run code as they are read and those of "
        "TensorFlow no current transformers reads: convert them once where you trust them (load with transformers, "
        "then save_pretrained) and name the folder"
    )
