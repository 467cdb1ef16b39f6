"""Models besides the encoder: NLI, classifiers, language models. Nothing heavy is imported before use."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from evaluators.errors import Unavailable
from evaluators.settings import EvaluatorSettings
from evaluators.spec import Ask, ModelRef, Vectors

_log = logging.getLogger(__name__)


class Model(Protocol):
    """Answers asks of any number and length in few passes over the weights. Safe to call from several threads."""

    @property
    def revision(self) -> str:
        """Names model, weights and whatever else moves its numbers, e.g. "toxic-bert@53aa5117"."""
        ...

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """One row per ask, in order, with the columns that `ModelRef` tells; NaN where an ask cannot be taken whole."""
        ...


@dataclass(frozen=True, slots=True)
class Models:
    """The models that are loaded, and why others are not."""

    loaded: Mapping[ModelRef, Model] = field(default_factory=dict)
    missing: Mapping[ModelRef, str] = field(default_factory=dict)


def load_models(refs: Iterable[ModelRef], settings: EvaluatorSettings) -> Models:
    """Every model that is there, ready to use; raises `ConfigError` for one that cannot be what it is said to be."""
    loaded: dict[ModelRef, Model] = {}
    missing: dict[ModelRef, str] = {}
    for ref in dict.fromkeys(refs):
        try:
            loaded[ref] = load(ref, settings)
        except Unavailable as error:
            missing[ref] = str(error)
    return Models(MappingProxyType(loaded), MappingProxyType(missing))


def load(ref: ModelRef, settings: EvaluatorSettings) -> Model:
    """The model, ready to use; raises `Unavailable` naming what to install or fetch, or `ConfigError`."""
    raise Unavailable(what_is_missing(ref, settings) or "")


def what_is_missing(ref: ModelRef, settings: EvaluatorSettings) -> str | None:
    """What to install or fetch before `load` can work, None where nothing is missing; looks, loads nothing."""
    return f"this version of ragwatch has no {ref.need} resource"


def revision_of(ref: ModelRef, settings: EvaluatorSettings) -> str:
    """The revision that `load` would give, without loading the model. Raises as it does."""
    return load(ref, settings).revision
