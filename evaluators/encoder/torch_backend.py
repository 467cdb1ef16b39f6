"""The encoder on sentence-transformers: for GPUs, for any architecture, and for CPUs where it is faster."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from ragtide.evaluators.encoder.windows import Frame
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime.batches import PaddedBatch
from ragtide.evaluators.runtime.torch_batches import TorchBatches
from ragtide.evaluators.runtime.torch_device import device_of, dtype_of, move_to_device, warm_up
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Vectors


class TorchBackend:
    """A `windows.Backend` on sentence-transformers.

    It does not add the prompts of a configuration ("query: "): the role of a text is unknown here.
    """

    def __init__(self, folder: Path, settings: EncoderSettings) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # a worker's log is no terminal
        device = device_of(settings.device)
        self._torch = torch
        try:
            self._model = SentenceTransformer(
                str(folder), device="cpu", local_files_only=True, model_kwargs={"use_safetensors": True}
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"sentence-transformers cannot load the model in {folder}: {type(error).__name__}: {error}; "
                "see evaluators.encoder.model"
            ) from error
        self._lock = Lock()  # a fast tokenizer is not safe to share
        [plain] = self.tokenize(["a"])
        framed = self._model.tokenizer("a")["input_ids"]
        at = framed.index(plain[0])
        before, after = tuple(framed[:at]), tuple(framed[at + len(plain) :])
        self.frame = Frame(before, after, int(self._model.max_seq_length))
        move_to_device(self._model.to(dtype_of(settings, device)), device, settings.model)
        self._batches = TorchBatches(self._unit_vectors, device, settings.threads)
        self.dimension = warm_up(self._batches, device, settings.batch_tokens, self.frame.max_tokens)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise each text, whole and without special tokens."""
        with self._lock:
            encoded = self._model.tokenizer(
                list(texts), add_special_tokens=False, padding=False, truncation=False, verbose=False
            )
        return list(encoded["input_ids"])

    def run(self, batches: Iterator[PaddedBatch]) -> Vectors:
        """Return unit vectors of padded windows."""
        return self._batches.run(batches)

    @property
    def batch_tokens(self) -> int:
        """Padded tokens of one forward pass. Fewer after the device ran out of memory."""
        return self._batches.batch_tokens

    def _unit_vectors(self, inputs: dict[str, Any]) -> Any:
        return self._torch.nn.functional.normalize(self._model(inputs)["sentence_embedding"].float(), dim=-1)
