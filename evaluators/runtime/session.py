"""ONNX Runtime on the CPU. Nothing is written to disk: the graph is in memory, the weights stay in their file."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ragtide.evaluators.runtime.graph import WORDS
from ragtide.evaluators.runtime.nodes import Nodes, Tensor
from ragtide.evaluators.runtime.weights import Weights
from ragtide.evaluators.spec import Vectors

BATCH_TOKENS = 256  # the fastest of 128 to 4096, and the leanest


class Session:
    """A graph over the weights of a model's folder, ready to run. Thread-safe."""

    def __init__(self, folder: Path, graph: Callable[[Nodes], bytes], threads: int, int8: bool = False) -> None:
        """Raises `ConfigError` if the weights are not those of the graph."""
        import onnxruntime

        weights = Weights(folder / "model.safetensors")
        nodes = Nodes(weights, int8)
        model = graph(nodes)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.enable_mem_pattern = False  # it would keep a plan for every shape ever seen
        options.log_severity_level = 3
        values = {name: onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for name, tensor in nodes.tensors.items()}
        options.add_external_initializers(list(values), list(values.values()))
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._tensors = nodes.tensors  # the session borrows their memory, most of it the file's
        self._words = weights[WORDS]
        weights.release()

    def run(self, **tokens: Tensor) -> Vectors:
        """Run the graph on its inputs, without `words`. Returns float32."""
        [given] = self._session.run(None, {**tokens, "words": self._words})
        return np.asarray(given, np.float32)
