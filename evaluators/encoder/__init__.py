"""The sentence encoder: one interface, two backends with the same vectors. Loads nothing heavy before use."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

from ragtide.evaluators.encoder import model
from ragtide.evaluators.encoder.model import find
from ragtide.evaluators.encoder.windows import WindowedEncoder
from ragtide.evaluators.errors import Unavailable
from ragtide.evaluators.runtime.int8 import revision_with_int8
from ragtide.evaluators.runtime.packages import missing_packages
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Vectors

Backend = Literal["onnx", "sentence-transformers"]

_BACKENDS: Sequence[Backend] = ("onnx", "sentence-transformers")


class Encoder(Protocol):
    """Encodes texts of any length as unit vectors. No text is cut. Thread-safe."""

    @property
    def revision(self) -> str:
        """Model and weights, such as "all-MiniLM-L6-v2@53aa5117". The same for every backend."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, one row per text, in order: float32 [len(texts), dimension]."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> int:
        """Count the tokens of all texts, without special tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Encoders:
    """Encoders other than the shared one, by name, and why others are missing."""

    loaded: Mapping[str, Encoder] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def backends_of(settings: EncoderSettings) -> Sequence[Backend]:
    """Return the backends that could run the model. For `auto` all that are installed, or onnx if none is."""
    if settings.backend != "auto":
        return [settings.backend]
    return [backend for backend in _BACKENDS if not _missing_packages(backend)] or ["onnx"]


def what_is_missing(settings: EncoderSettings) -> str | None:
    """Return what to install or fetch before `load_encoder` can work, or None. Loads nothing.

    Raises `ConfigError` for a model that cannot exist.
    """
    absent = _missing_packages(backends_of(settings)[0])
    return "; ".join(filter(None, (absent, model.what_is_missing(settings)))) or None


def revision_of(settings: EncoderSettings) -> str:
    """Return the revision of `load_encoder`, without loading the model. Raises like it."""
    return revision_with_int8(find(settings).revision, settings.int8_tolerance)


def load_encoder(settings: EncoderSettings) -> WindowedEncoder:
    """Load the configured encoder. Raises `Unavailable` with what to install, or `ConfigError`."""
    from ragtide.evaluators.encoder.runtimes import load_fastest

    missing = what_is_missing(settings)
    if missing:
        raise Unavailable(missing)
    files = find(settings)
    return load_fastest(files, settings, backends_of(settings))


def settings_of_other(name: str, settings: EncoderSettings) -> EncoderSettings:
    """Return the settings of another encoder: those of the shared one, with the newest local revision."""
    return settings.model_copy(update={"model": name, "revision": None})


def load_encoders(names: Iterable[str], settings: EncoderSettings) -> Encoders:
    """Load every available encoder of these names. Raises `ConfigError`."""
    loaded: dict[str, Encoder] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(names):
        try:
            loaded[name] = load_encoder(settings_of_other(name, settings))
        except Unavailable as error:
            missing[name] = str(error)
    return Encoders(MappingProxyType(loaded), MappingProxyType(missing))


def _missing_packages(backend: Backend) -> str | None:
    return missing_packages(f"the encoder backend {backend}", backend)
