"""Sequence classifiers of the BERT family on ONNX Runtime, on a CPU and without torch."""

from collections.abc import Iterator

import numpy as np

from ragtide.evaluators.models.files import ModelFiles
from ragtide.evaluators.models.onnx_classifier import read
from ragtide.evaluators.models.pieces import Pieces
from ragtide.evaluators.runtime.batches import PaddedBatch
from ragtide.evaluators.runtime.session import BATCH_TOKENS, Session
from ragtide.evaluators.settings import ModelSettings
from ragtide.evaluators.spec import Vectors


class OnnxSequence:
    """A `sequence.Backend` on ONNX Runtime, for models without faults in `onnx_classifier.why_not`."""

    def __init__(self, files: ModelFiles, settings: ModelSettings, int8: bool = False) -> None:
        from tokenizers import Tokenizer

        model = read(files)
        tokenizer = Tokenizer.from_file(str(files.folder / "tokenizer.json"))
        self.pieces = Pieces(tokenizer, model.max_tokens, model.transformer.padding, model.kinds)
        self.batch_tokens = settings.batch_tokens or BATCH_TOKENS
        self._kinds = model.kinds
        self._session = Session(files.folder, model.graph, settings.threads, int8)

    def run(self, batches: Iterator[PaddedBatch]) -> Vectors:
        """Return the logits of all batches, in order."""
        return np.concatenate([self._logits(batch) for batch in batches])

    def _logits(self, batch: PaddedBatch) -> Vectors:
        if not self._kinds:
            return self._session.run(ids=batch.ids, mask=batch.mask)
        kinds = np.zeros_like(batch.ids) if batch.kinds is None else batch.kinds
        return self._session.run(ids=batch.ids, mask=batch.mask, kinds=kinds)
