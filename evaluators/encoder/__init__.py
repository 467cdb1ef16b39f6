"""The sentence encoder: one interface, two backends with the same vectors. Nothing heavy is imported before use."""

from collections.abc import Sequence
from typing import Protocol

from evaluators.settings import EncoderSettings
from evaluators.spec import Vectors


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


def load_encoder(settings: EncoderSettings) -> Encoder:
    """The configured encoder, ready to use; raises `Unavailable` naming what to install, or `ConfigError`."""
    raise NotImplementedError
