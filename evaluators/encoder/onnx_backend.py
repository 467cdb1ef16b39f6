"""The encoder on ONNX Runtime, on a CPU and without torch. Loads in a third of a second."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ragtide.evaluators.encoder.sentence import read
from ragtide.evaluators.encoder.windows import Frame
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime.batches import PaddedBatch
from ragtide.evaluators.runtime.session import BATCH_TOKENS, Session
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Vectors


class OnnxBackend:
    """A `windows.Backend` on ONNX Runtime, on the CPU."""

    def __init__(self, folder: Path, settings: EncoderSettings, int8: bool = False) -> None:
        from tokenizers import Tokenizer

        model = read(folder)
        self.dimension = model.transformer.hidden
        self.batch_tokens = settings.batch_tokens or BATCH_TOKENS
        if not (folder / "tokenizer.json").is_file():
            raise ConfigError(f"model {folder.name!r} has no tokenizer.json, which the onnx backend needs")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        [plain] = self.tokenize(["a"])
        framed = self._tokenizer.encode("a").ids
        at = framed.index(plain[0])
        self.frame = Frame(tuple(framed[:at]), tuple(framed[at + len(plain) :]), model.max_tokens)
        self._session = Session(folder, model.graph, settings.threads, int8)

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise each text, whole and without special tokens."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def run(self, batches: Iterator[PaddedBatch]) -> Vectors:
        """Return unit vectors of padded windows."""
        return np.concatenate([self._session.run(ids=batch.ids, mask=batch.mask) for batch in batches])
