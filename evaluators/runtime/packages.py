"""Packages of each backend, and how to install missing ones."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

_NEEDS: Mapping[str, Sequence[str]] = {
    "onnx": ("onnxruntime", "onnx", "tokenizers"),
    "torch": ("torch", "transformers"),
    "sentence-transformers": ("torch", "sentence_transformers"),
}


def missing_packages(what: str, backend: str, why: str = "") -> str | None:
    """Return the packages that `what` lacks for the backend, and how to install them. None if there are none.

    `why` says why it needs this backend.
    """
    packages = [name for name in _NEEDS[backend] if find_spec(name) is None]
    if not packages:
        return None
    extra = "ragtide[local]" if backend == "onnx" else "ragtide[models]"
    reason = f" ({why})" if why else ""
    return f"{' and '.join(packages)} for {what} not installed: pip install '{extra}'{reason}"
