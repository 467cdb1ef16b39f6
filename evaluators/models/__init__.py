"""Models besides the encoder: NLI, classifiers, language models. Nothing heavy is imported before use."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.models import runtimes
from ragtide.evaluators.models.files import find, settings_of
from ragtide.evaluators.models.labels import labels_of
from ragtide.evaluators.runtime.int8 import revision_with_int8
from ragtide.evaluators.runtime.packages import missing_packages
from ragtide.evaluators.settings import EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import Ask, ModelRef, Need, Vectors


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
    missing = what_is_missing(ref, settings)
    if missing:
        raise Unavailable(missing)
    files, own = find(ref.name, settings), settings_of(ref.name, settings)
    if ref.need is Need.LM:
        from ragtide.evaluators.models.causal import CausalModel

        return CausalModel(_revision_with_precision(files.revision, own), files, own)
    labels = labels_of(ref, files)  # before the weights: a wrong label is told at once
    return runtimes.load_fastest(
        files, _revision_with_precision(files.revision, own), own, labels, pairs=ref.need is Need.NLI
    )


def what_is_missing(ref: ModelRef, settings: EvaluatorSettings) -> str | None:
    """What to install or fetch before `load` can work, None where nothing is missing; looks, loads nothing.

    Raises `ConfigError` for settings under which it never could.
    """
    own = settings_of(ref.name, settings)
    if ref.need is Need.LM and own.int8_tolerance is not None:
        raise ConfigError(f'evaluators.models."{ref.name}".int8_tolerance: no language model runs in int8; unset it')
    absent = [missing_packages(f"the model {ref.name}", backend) for backend in _backends(ref, own)]
    if all(absent):
        return absent[0]
    try:
        files = find(ref.name, settings)
    except Unavailable as error:
        return str(error)
    return None if ref.need is Need.LM else runtimes.what_is_missing(files, own)


def revision_of(ref: ModelRef, settings: EvaluatorSettings) -> str:
    """The revision that `load` would give, without loading the model. Raises as it does."""
    return _revision_with_precision(find(ref.name, settings).revision, settings_of(ref.name, settings))


def _backends(ref: ModelRef, own: ModelSettings) -> Sequence[str]:
    """What might run the model, whatever its architecture."""
    if ref.need is Need.LM:
        return ["torch"]
    return ["torch", "onnx"] if own.backend == "auto" else [own.backend]


def _revision_with_precision(revision: str, settings: ModelSettings) -> str:
    """Of `dtype` auto every machine's numbers count as the same: they differ by 0.02 at most."""
    return revision_with_int8(f"{revision}+bf16" if settings.dtype == "bfloat16" else revision, settings.int8_tolerance)
