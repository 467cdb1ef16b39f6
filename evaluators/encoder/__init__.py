"""The sentence encoder: one interface, two backends with the same vectors. Nothing heavy is imported before use."""

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


@dataclass(frozen=True, slots=True)
class Encoders:
    """Encoders beside the shared one that are loaded, by name, and why others are not."""

    loaded: Mapping[str, Encoder] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def backends_of(settings: EncoderSettings) -> Sequence[Backend]:
    """What could run the model here: of `auto` all that is installed; where nothing is, onnx, to say what it lacks."""
    if settings.backend != "auto":
        return [settings.backend]
    return [backend for backend in _BACKENDS if not _missing_packages(backend)] or ["onnx"]


def what_is_missing(settings: EncoderSettings) -> str | None:
    """What to install or fetch before `load_encoder` can work, None where nothing is missing; looks, loads nothing.

    Raises `ConfigError` for a model that cannot be anywhere.
    """
    absent = _missing_packages(backends_of(settings)[0])
    return "; ".join(filter(None, (absent, model.what_is_missing(settings)))) or None


def revision_of(settings: EncoderSettings) -> str:
    """The revision that `load_encoder` would give, without loading the model. Raises as it does."""
    return revision_with_int8(find(settings).revision, settings.int8_tolerance)


def load_encoder(settings: EncoderSettings) -> WindowedEncoder:
    """The configured encoder, ready to use; raises `Unavailable` naming what to install, or `ConfigError`."""
    from ragtide.evaluators.encoder.runtimes import load_fastest

    missing = what_is_missing(settings)
    if missing:
        raise Unavailable(missing)
    files = find(settings)
    return load_fastest(files, settings, backends_of(settings))


def settings_of_other(name: str, settings: EncoderSettings) -> EncoderSettings:
    """How an encoder beside the shared one runs: as that does, in the newest revision that is here."""
    return settings.model_copy(update={"model": name, "revision": None})


def load_encoders(names: Iterable[str], settings: EncoderSettings) -> Encoders:
    """Every encoder beside the shared one that is there, ready to use; raises `ConfigError`."""
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
