"""sentence-transformers: the encoder where torch is installed, and the one for GPUs and for any architecture."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import numpy as np

from evaluators.encoder.windows import Frame, Ids
from evaluators.errors import ConfigError
from evaluators.settings import EncoderSettings
from evaluators.spec import Vectors

_BATCH_TOKENS_CPU = 1024
_BATCH_TOKENS_GPU = 65_536


class TorchBackend:
    """A `windows.Backend` on sentence-transformers. Sets the process's torch threads: they belong to the encoder.

    Prompts that a model's configuration names ("query: ") are not put before texts; nothing here knows their role.
    """

    def __init__(self, folder: Path, settings: EncoderSettings) -> None:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # a worker's log is no terminal
        torch.set_num_threads(settings.threads)
        self._torch = torch
        try:
            self._model = SentenceTransformer(str(folder), device=settings.device, local_files_only=True).eval()
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"sentence-transformers cannot load the model in {folder}, device {settings.device or 'auto'}: "
                f"{type(error).__name__}: {error}; see evaluators.encoder.model and evaluators.encoder.device"
            ) from error
        self._lock = Lock()  # a fast tokenizer is not safe to share
        on_gpu = self._model.device.type != "cpu"
        self.batch_tokens = settings.batch_tokens or (_BATCH_TOKENS_GPU if on_gpu else _BATCH_TOKENS_CPU)
        [plain] = self.tokenize(["a"])
        framed = self._model.tokenizer("a")["input_ids"]
        at = framed.index(plain[0])
        before, after = tuple(framed[:at]), tuple(framed[at + len(plain) :])
        self.frame = Frame(before, after, int(self._model.max_seq_length))
        self.dimension = self.forward(np.array([framed]), np.ones((1, len(framed)), np.int64)).shape[1]

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Word pieces of each text, whole and without special tokens."""
        with self._lock:
            encoded = self._model.tokenizer(
                list(texts), add_special_tokens=False, padding=False, truncation=False, verbose=False
            )
        return list(encoded["input_ids"])

    def forward(self, ids: Ids, mask: Ids) -> Vectors:
        """Unit vectors of padded windows."""
        torch = self._torch
        with torch.inference_mode():
            features = {
                "input_ids": torch.from_numpy(ids).to(self._model.device),
                "attention_mask": torch.from_numpy(mask).to(self._model.device),
            }
            vectors = self._model(features)["sentence_embedding"].float()
            unit = torch.nn.functional.normalize(vectors, dim=-1)
        return np.asarray(unit.cpu().numpy(), np.float32)
