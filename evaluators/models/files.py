"""Finds a model's files on this machine. Downloads nothing."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.models.known_models import KNOWN_MODELS, KnownModel
from ragtide.evaluators.runtime import hub
from ragtide.evaluators.runtime.folders import (
    cached_folder,
    hash_of,
    is_complete,
    missing_model_message,
    no_safetensors,
    weights_in,
)
from ragtide.evaluators.settings import EvaluatorSettings, ModelSettings


@dataclass(frozen=True, slots=True)
class Source:
    """The model behind a name, by settings and the table of known models."""

    name: str  # as parameters of evaluators give it
    place: str  # a folder, or a name on Hugging Face
    revision: str | None  # commit, tag or branch on Hugging Face
    multi_label: bool = False

    @property
    def setting(self) -> str:
        """The setting that changes it."""
        return f'evaluators.models."{self.name}".source'


@dataclass(frozen=True)
class ModelFiles:
    """A folder with config.json, a tokenizer and safetensors."""

    source: Source
    folder: Path
    commit: str | None  # None: of a folder of one's own

    @cached_property
    def revision(self) -> str:
        """Name, and the first eight hex digits of the commit, or for a folder of the weights' SHA-256."""
        name = self.source.place.rstrip("/").rsplit("/", 1)[-1] if self.commit else self.folder.resolve().name
        return f"{name}@{(self.commit or hash_of(weights_in(self.folder)))[:8]}"


def settings_of(name: str, settings: EvaluatorSettings) -> ModelSettings:
    """Return the settings of the model."""
    return settings.models.get(name) or ModelSettings()


def source_of(name: str, settings: EvaluatorSettings) -> Source:
    """Return the source of a name. Reads no file."""
    own = settings_of(name, settings)
    place = own.source or name
    known = KNOWN_MODELS.get(place) or KnownModel(place)
    named = KNOWN_MODELS.get(name) or known  # a folder of one's own in its stead is read as it would be
    return Source(name, known.source, own.revision or known.revision, known.multi_label or named.multi_label)


def find(name: str, settings: EvaluatorSettings) -> ModelFiles:
    """Find the files of the model. Raises `Unavailable` with the command that fetches them, or `ConfigError`."""
    source = source_of(name, settings)
    folder = Path(source.place).expanduser()
    if folder.is_dir():
        return ModelFiles(source, check_folder(source, folder), None)
    if folder.is_absolute() or source.place.startswith((".", "~")) or source.place.count("/") > 1:
        raise ConfigError(f"{source.setting}: there is no folder {source.place!r}")
    if not hub.NAME.match(source.place):
        raise ConfigError(f"{source.setting}: {source.place!r} is neither a folder nor a Hugging Face name")
    snapshot = cached_folder(source.place, source.revision)
    if snapshot is None:
        raise Unavailable(missing_model_message(name))
    return ModelFiles(source, snapshot, snapshot.name)


def check_folder(source: Source, folder: Path) -> Path:
    """Return the folder if a model can be read from it. Raises `ConfigError` with what is missing."""
    if is_complete(folder):
        return folder
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{source.setting}: the folder {folder} has no config.json; it is no model of transformers")
    if not weights_in(folder):
        raise ConfigError(f"{source.setting}: {no_safetensors(str(folder), [path.name for path in folder.iterdir()])}")
    raise ConfigError(f"{source.setting}: the folder {folder} lacks weights of its index; copy it again")
