"""The sentence encoder: one interface, two backends with the same vectors. Nothing heavy is imported before use."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal, Protocol

from evaluators.encoder import model
from evaluators.encoder.model import find
from evaluators.errors import Unavailable
from evaluators.settings import EncoderSettings
from evaluators.spec import Vectors

_NEEDS = {
    "onnx": ("onnxruntime", "onnx", "tokenizers"),
    "sentence-transformers": ("torch", "sentence_transformers"),
}
_EXTRA = {"onnx": "ragwatch[local]", "sentence-transformers": "ragwatch[models]"}


class Encoder(Protocol):
    """Turns texts into unit vectors, whatever their length: nothing is cut. Safe to call from several threads."""

    @property
    def revision(self) -> str:
        """Names model and weights, e.g. "all-MiniLM-L6-v2@53aa5117"; the same for every backend."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, one row per text, in order: float32 [len(texts), dimension]."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Word pieces of all texts together, without special tokens."""
        ...


def backend_of(settings: EncoderSettings) -> Literal["onnx", "sentence-transformers"]:
    """What would run the model: `auto` is sentence-transformers where torch is installed, else onnx."""
    if settings.backend != "auto":
        return settings.backend
    return "onnx" if _missing("sentence-transformers") else "sentence-transformers"


def what_is_missing(settings: EncoderSettings) -> str | None:
    """What to install or fetch before `load_encoder` can work, None where nothing is missing; looks, loads nothing.

    Raises `ConfigError` for a model that cannot be anywhere.
    """
    backend = backend_of(settings)
    packages = " and ".join(_missing(backend))
    missing = f"{packages} for the encoder backend {backend} not installed: pip install '{_EXTRA[backend]}'"
    return "; ".join(filter(None, (missing if packages else None, model.what_is_missing(settings)))) or None


def revision_of(settings: EncoderSettings) -> str:
    """The revision that `load_encoder` would give, without loading the model. Raises as it does."""
    return find(settings).revision


def load_encoder(settings: EncoderSettings) -> Encoder:
    """The configured encoder, ready to use; raises `Unavailable` naming what to install, or `ConfigError`."""
    from evaluators.encoder.windows import Backend, WindowedEncoder

    missing = what_is_missing(settings)
    if missing:
        raise Unavailable(missing)
    files = find(settings)
    backend: Backend
    if backend_of(settings) == "onnx":
        from evaluators.encoder.onnx_backend import OnnxBackend

        backend = OnnxBackend(files.folder, settings)
    else:
        from evaluators.encoder.torch_backend import TorchBackend

        backend = TorchBackend(files.folder, settings)
    return WindowedEncoder(files.revision, backend)


def _missing(backend: Literal["onnx", "sentence-transformers"]) -> list[str]:
    return [name for name in _NEEDS[backend] if find_spec(name) is None]
