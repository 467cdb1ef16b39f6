"""Downloads models from Hugging Face to its local cache. The only part with network access, and only on demand."""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.evaluators.models.convert import FORMATS, convert_weights
from ragtide.evaluators.models.files import ModelFiles, find, settings_of, source_of
from ragtide.evaluators.runtime.folders import is_complete, no_safetensors
from ragtide.evaluators.settings import EvaluatorSettings

_SMALL = ("*.json", "*.txt", "*.model")
_CODE = "*.py"
_WEIGHTS = ("model.safetensors", "model-*-of-*.safetensors", "*_*/model.safetensors")  # the last: a module's own


def fetch(name: str, settings: EvaluatorSettings, bar: Any = None) -> ModelFiles:
    """Return the files of the model, after downloading missing ones.

    `bar` is a class like `tqdm.auto.tqdm`, updated with every byte. Raises like `download`, or like `find` for a
    folder.
    """
    source = source_of(name, settings)
    if not Path(source.place).expanduser().is_dir():
        download(source.place, source.revision, settings_of(name, settings).remote_code, bar)
    return find(name, settings)


def download(place: str, revision: str | None = None, code: bool = False, bar: Any = None) -> Path:
    """The folder of a Hugging Face model with its configuration, tokenizer and safetensors; weights come last.

    Where the hub has but a pickle, or what TensorFlow wrote, its tensors are rewritten as safetensors here and all else
    in it is refused. `code` fetches the model's own Python as well. Raises `ConfigError` for what a person must change,
    `Transient` where the hub or the network may be back later. Call it again to go on after that.
    """
    from huggingface_hub import HfApi, snapshot_download

    with _translate_errors(place, revision):
        info = HfApi().model_info(place, revision=revision)
        names = [file.rfilename for file in info.siblings or ()]
        if "config.json" not in names:
            raise ConfigError(f"{place} has no config.json on Hugging Face; it is no model of transformers")
        weights: Sequence[str] = _WEIGHTS
        if not any(name.endswith(".safetensors") and name.startswith("model") for name in names):
            weights = [name for name in FORMATS if name in names][:1]
            if not weights:
                raise ConfigError(no_safetensors(place, names))
        small = [*_SMALL, _CODE] if code else [*_SMALL]
        snapshot_download(place, revision=revision, allow_patterns=small, tqdm_class=bar)
        folder = Path(snapshot_download(place, revision=revision, allow_patterns=list(weights), tqdm_class=bar))
        if weights != _WEIGHTS:
            convert_weights(folder)
    if not is_complete(folder):  # the client is silent where the hub goes away between two of its calls
        raise Transient(f"the download of {place} is incomplete: fetch it again")
    return folder


@contextmanager
def _translate_errors(place: str, revision: str | None) -> Iterator[None]:
    """Turn errors of the client into errors that say what to do."""
    import httpx
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise ConfigError(f"{place} is gated: accept its terms on Hugging Face, then set HF_TOKEN") from error
    except errors.RepositoryNotFoundError as error:
        raise ConfigError(f"Hugging Face has no model {place}, or it is private and needs HF_TOKEN") from error
    except errors.RevisionNotFoundError as error:
        raise ConfigError(f"{place} has no revision {revision!r} on Hugging Face") from error
    except errors.HFValidationError as error:
        raise ConfigError(f"{place!r} is neither a folder nor a name on Hugging Face") from error
    except errors.OfflineModeIsEnabled as error:
        raise ConfigError(f"{place} cannot be fetched: HF_HUB_OFFLINE is set") from error
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, httpx.HTTPError) as error:
        raise Transient(f"{place} could not be fetched ({type(error).__name__}): is Hugging Face reachable?") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise ConfigError(f"no room on the disk for {place}; HF_HUB_CACHE says where it goes") from error
        raise Transient(f"{place} could not be fetched ({type(error).__name__}: {error.strerror})") from error
