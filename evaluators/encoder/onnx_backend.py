"""ONNX Runtime: the encoder where there is no torch. Ready in a third of a second."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from evaluators.encoder.bert import read
from evaluators.encoder.graph import WORDS, Graph
from evaluators.encoder.weights import Weights
from evaluators.encoder.windows import Frame
from evaluators.errors import ConfigError
from evaluators.models.batches import Padded
from evaluators.settings import EncoderSettings
from evaluators.spec import Vectors

_BATCH_TOKENS = 256  # the fastest of 128 to 4096, and the leanest


class OnnxBackend:
    """A `windows.Backend` on ONNX Runtime, on the CPU. Nothing is written to disk: the graph lives in memory."""

    def __init__(self, folder: Path, settings: EncoderSettings) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        bert = read(folder)
        self.dimension = bert.hidden
        self.batch_tokens = settings.batch_tokens or _BATCH_TOKENS
        if not (folder / "tokenizer.json").is_file():
            raise ConfigError(f"model {folder.name!r} has no tokenizer.json, which the onnx backend needs")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        [plain] = self.tokenize(["a"])
        framed = self._tokenizer.encode("a").ids
        at = framed.index(plain[0])
        self.frame = Frame(tuple(framed[:at]), tuple(framed[at + len(plain) :]), bert.max_tokens)

        weights = Weights(folder / "model.safetensors")
        graph = Graph(bert, weights)
        model = graph.build()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings.threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_mem_pattern = False  # it would keep a plan for every shape ever seen
        options.log_severity_level = 3
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for name, tensor in graph.tensors.items()}
        options.add_external_initializers(list(values), list(values.values()))
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tensors = graph.tensors  # the session borrows their memory, most of it the file's
        self._words = weights[WORDS]
        weights.release()

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Word pieces of each text, whole and without special tokens."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def run(self, batches: Iterator[Padded]) -> Vectors:
        """Unit vectors of padded windows."""
        return np.concatenate([self._forward(batch) for batch in batches])

    def _forward(self, batch: Padded) -> Vectors:
        [vectors] = self._session.run(["vectors"], {"ids": batch.ids, "mask": batch.mask, "words": self._words})
        return np.asarray(vectors, np.float32)
