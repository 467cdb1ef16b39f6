"""Models besides the encoder: NLI, classifiers, language models. Loads nothing heavy before use."""

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
    """Answers asks of any number and length in few forward passes. Thread-safe."""

    @property
    def revision(self) -> str:
        """Model, weights and everything else that affects scores, such as "toxic-bert@53aa5117"."""
        ...

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """Return one row per ask, in order, with the columns of `ModelRef`. NaN if an ask cannot be read whole."""
        ...


@dataclass(frozen=True, slots=True)
class Models:
    """Loaded models, and why others are missing."""

    loaded: Mapping[ModelRef, Model] = field(default_factory=dict)
    missing: Mapping[ModelRef, str] = field(default_factory=dict)


def load_models(refs: Iterable[ModelRef], settings: EvaluatorSettings) -> Models:
    """Load every available model. Raises `ConfigError` for one whose files do not fit its use."""
    loaded: dict[ModelRef, Model] = {}
    missing: dict[ModelRef, str] = {}
    for ref in dict.fromkeys(refs):
        try:
            loaded[ref] = load(ref, settings)
        except Unavailable as error:
            missing[ref] = str(error)
    return Models(MappingProxyType(loaded), MappingProxyType(missing))


def load(ref: ModelRef, settings: EvaluatorSettings) -> Model:
    """Load the model. Raises `Unavailable` with what to install or fetch, or `ConfigError`."""
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
    """Return what to install or fetch before `load` can work, or None. Loads nothing.

    Raises `ConfigError` for settings that can never work.
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
    """Return the revision of `load`, without loading the model. Raises like it."""
    return _revision_with_precision(find(ref.name, settings).revision, settings_of(ref.name, settings))


def _backends(ref: ModelRef, own: ModelSettings) -> Sequence[str]:
    """Return the backends that might run the model, whatever its architecture."""
    if ref.need is Need.LM:
        return ["torch"]
    return ["torch", "onnx"] if own.backend == "auto" else [own.backend]


def _revision_with_precision(revision: str, settings: ModelSettings) -> str:
    """Add the precision. With `dtype` auto all machines share a revision: their numbers differ by 0.02 at most."""
    return revision_with_int8(f"{revision}+bf16" if settings.dtype == "bfloat16" else revision, settings.int8_tolerance)
