"""Sequence classifiers of any architecture that transformers has, on a CPU or a GPU."""

import inspect
from collections.abc import Iterator
from typing import Any

from evaluators.errors import ConfigError
from evaluators.models.batches import Padded
from evaluators.models.files import ModelFiles
from evaluators.models.pieces import Pieces
from evaluators.models.torch_batches import TorchBatches
from evaluators.models.torch_device import device_of, dtype_of, ready
from evaluators.settings import ModelSettings
from evaluators.spec import Vectors

# Position embeddings of these begin behind the one of the padding token: of 514 places 512 are for tokens.
_POSITIONS_AFTER_PADDING = ("roberta", "camembert", "longformer", "mpnet", "xmod", "ibert", "data2vec-text")
_UNLIMITED = 1 << 20  # a tokenizer without a limit says 10**30


class TorchSequence:
    """A `sequence.Backend` on transformers. Sets the process's torch threads, as the encoder does."""

    def __init__(self, files: ModelFiles, settings: ModelSettings) -> None:
        import torch
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # a worker's log is no terminal
        torch.set_num_threads(settings.threads)
        device = device_of(settings.device)
        model, tokenizer = _loaded(files, settings, dtype_of(settings, device))
        self._model = model.to(device).eval()
        takes = inspect.signature(model.forward).parameters
        with_kinds = "token_type_ids" in takes and "token_type_ids" in tokenizer.model_input_names
        pad = tokenizer.pad_token_id or 0
        self.pieces = Pieces(tokenizer.backend_tokenizer, _max_tokens(model.config, tokenizer), pad, with_kinds)
        self._batches = TorchBatches(self._logits, device, settings.batch_tokens or _UNLIMITED)
        ready(self._batches, device, settings.batch_tokens, self.pieces.max_tokens)

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of one forward pass; fewer once the device ran out of memory."""
        return self._batches.batch_tokens

    def run(self, batches: Iterator[Padded]) -> Vectors:
        """The logits of all batches, in order."""
        return self._batches.run(batches)

    def _logits(self, inputs: dict[str, Any]) -> Any:
        return self._model(**inputs).logits


def _loaded(files: ModelFiles, settings: ModelSettings, dtype: Any) -> tuple[Any, Any]:
    """Model and fast tokenizer; raises `ConfigError` that says what transformers said."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    local = {"local_files_only": True, "trust_remote_code": settings.remote_code}
    try:
        model, loading = AutoModelForSequenceClassification.from_pretrained(
            files.folder, dtype=dtype, use_safetensors=True, output_loading_info=True, **local
        )
        tokenizer = AutoTokenizer.from_pretrained(files.folder, **local)
    except (OSError, ValueError, RuntimeError, ImportError, KeyError) as error:
        raise ConfigError(
            f"transformers cannot load the model {files.source.name} from {files.folder}: "
            f"{type(error).__name__}: {error}"
        ) from error
    if loading["missing_keys"]:  # transformers would fill them with random numbers
        lacking = ", ".join(sorted(loading["missing_keys"])[:3])
        raise ConfigError(f"{files.folder} holds no trained classifier: it has no weights for {lacking}")
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(f"the model {files.source.name} has no fast tokenizer (tokenizer.json), which is needed")
    return model, tokenizer


def _max_tokens(config: Any, tokenizer: Any) -> int:
    """The most tokens that the model reads at once, special ones with them."""
    positions = int(getattr(config, "max_position_embeddings", None) or _UNLIMITED)
    if any(name in config.model_type for name in _POSITIONS_AFTER_PADDING):
        positions -= config.pad_token_id + 1
    most = min(int(tokenizer.model_max_length), positions)
    if most >= _UNLIMITED:
        raise ConfigError("neither config.json nor the tokenizer says how many tokens the model reads at once")
    return most
