"""Sequence classifiers of any architecture of transformers, on a CPU or a GPU."""

import inspect
from collections.abc import Iterator
from typing import Any

from ragtide.evaluators.models.files import ModelFiles
from ragtide.evaluators.models.pieces import Pieces
from ragtide.evaluators.models.torch_files import load_model, most_tokens
from ragtide.evaluators.runtime.batches import PaddedBatch
from ragtide.evaluators.runtime.torch_batches import TorchBatches
from ragtide.evaluators.runtime.torch_device import device_of, dtype_of, move_to_device, warm_up
from ragtide.evaluators.settings import ModelSettings
from ragtide.evaluators.spec import Vectors


class TorchSequence:
    """A `sequence.Backend` on transformers."""

    def __init__(self, files: ModelFiles, settings: ModelSettings) -> None:
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # a worker's log is no terminal
        device = device_of(settings.device)
        model, tokenizer = load_model("AutoModelForSequenceClassification", files, settings, dtype_of(settings, device))
        self._model = move_to_device(model, device, files.source.name)
        takes = inspect.signature(model.forward).parameters
        with_kinds = "token_type_ids" in takes and "token_type_ids" in tokenizer.model_input_names
        pad = tokenizer.pad_token_id or 0
        self.pieces = Pieces(tokenizer.backend_tokenizer, most_tokens(model.config, tokenizer), pad, with_kinds)
        self._batches = TorchBatches(self._logits, device, settings.threads)
        warm_up(self._batches, device, settings.batch_tokens, self.pieces.max_tokens)

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of one forward pass. Fewer after the device ran out of memory."""
        return self._batches.batch_tokens

    def run(self, batches: Iterator[PaddedBatch]) -> Vectors:
        """Return the logits of all batches, in order."""
        return self._batches.run(batches)

    def _logits(self, inputs: dict[str, Any]) -> Any:
        return self._model(**inputs).logits
