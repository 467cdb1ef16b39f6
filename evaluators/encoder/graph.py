"""A BERT sentence encoder as an ONNX graph, straight from its weights: no torch, no exported file.

Inputs: `ids` and `mask` [batch, length] int64, and `words`, the table of word vectors [vocabulary, hidden]. Output:
`vectors` [batch, hidden], pooled and of unit length. The word table (half of MiniLM's weights) is an input so that it
can stay in its file: only the rows of words that occur are ever read.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluators.encoder.bert import Bert
from evaluators.encoder.weights import Weights
from evaluators.spec import Vectors

WORDS = "embeddings.word_embeddings.weight"
_OPSET, _IR = 20, 10  # the first with Gelu; both read by onnxruntime >= 1.18


class Graph:
    """Nodes and the weights that they name; the weights are handed to the session, not written into the graph."""

    def __init__(self, bert: Bert, weights: Weights) -> None:
        self._bert = bert
        self._weights = weights
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self.tensors: dict[str, Vectors] = {}

    def build(self) -> bytes:
        """The serialised model; `tensors` then holds its external weights by name."""
        from onnx import TensorProto, helper

        mask = self._op("Cast", "mask", to=TensorProto.FLOAT)
        hidden = self._embeddings()
        off = self._op("Sub", self._op("Unsqueeze", mask, self._ints("axes12", 1, 2)), self._float("one", 1.0))
        bias = self._op("Mul", off, self._float("far", 1e9))
        for layer in range(self._bert.layers):
            hidden = self._layer(hidden, bias, f"encoder.layer.{layer}.")
        self._nodes.append(helper.make_node("LpNormalization", [self._pooled(hidden, mask)], ["vectors"], axis=-1, p=2))

        def value(name: str, kind: int, *shape: str | int) -> Any:
            return helper.make_tensor_value_info(name, kind, list(shape))

        graph = helper.make_graph(
            self._nodes,
            "sentence_encoder",
            [
                value("ids", TensorProto.INT64, "batch", "length"),
                value("mask", TensorProto.INT64, "batch", "length"),
                value("words", TensorProto.FLOAT, "vocabulary", self._bert.hidden),
            ],
            [value("vectors", TensorProto.FLOAT, "batch", self._bert.hidden)],
            [*self._constants.values(), *(_external(name, tensor) for name, tensor in self.tensors.items())],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
        return bytes(model.SerializeToString())

    def _embeddings(self) -> str:
        length = self._op("Gather", self._op("Shape", "ids"), self._ints("second", 1), axis=0)
        table = self._weight("embeddings.position_embeddings.weight")
        positions = self._op("Slice", table, self._ints("zero", 0), length, self._ints("zero", 0))
        summed = self._op("Add", self._op("Gather", "words", "ids"), positions)
        kinds = self._tensor("type0", self._weights["embeddings.token_type_embeddings.weight"][0])
        return self._norm(self._op("Add", summed, kinds), "embeddings.LayerNorm")

    def _layer(self, hidden: str, bias: str, name: str) -> str:
        size = self._bert.hidden // self._bert.heads
        split = self._ints("split", 0, 0, self._bert.heads, size)

        def heads(part: str, perm: list[int]) -> str:
            linear = self._linear(hidden, f"{name}attention.self.{part}")
            return self._op("Transpose", self._op("Reshape", linear, split), perm=perm)

        query, key = heads("query", [0, 2, 1, 3]), heads("key", [0, 2, 3, 1])
        scaled = self._op("Mul", self._op("MatMul", query, key), self._float("scale", 1 / math.sqrt(size)))
        attention = self._op("Softmax", self._op("Add", scaled, bias), axis=-1)
        mixed = self._op("MatMul", attention, heads("value", [0, 2, 1, 3]))
        merged = self._op(
            "Reshape",
            self._op("Transpose", mixed, perm=[0, 2, 1, 3]),
            self._ints("merge", 0, 0, self._bert.hidden),
        )
        attended = self._op("Add", self._linear(merged, f"{name}attention.output.dense"), hidden)
        hidden = self._norm(attended, f"{name}attention.output.LayerNorm")
        inner = self._op("Gelu", self._linear(hidden, f"{name}intermediate.dense"))
        outer = self._op("Add", self._linear(inner, f"{name}output.dense"), hidden)
        return self._norm(outer, f"{name}output.LayerNorm")

    def _pooled(self, hidden: str, mask: str) -> str:
        if self._bert.pooling == "cls":
            return self._op("Gather", hidden, self._scalar("first", 0), axis=1)
        wide = self._op("Unsqueeze", mask, self._ints("axis2", 2))
        axis = self._ints("axis1", 1)
        total = self._op("ReduceSum", self._op("Mul", hidden, wide), axis, keepdims=0)
        return self._op("Div", total, self._op("ReduceSum", wide, axis, keepdims=0))

    def _linear(self, x: str, name: str) -> str:
        turned = self._op("Transpose", self._weight(f"{name}.weight"), perm=[1, 0])  # folded once, by the session
        return self._op("Add", self._op("MatMul", x, turned), self._weight(f"{name}.bias"))

    def _norm(self, x: str, name: str) -> str:
        weight, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._op("LayerNormalization", x, weight, bias, axis=-1, epsilon=self._bert.epsilon)

    def _op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        output = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def _weight(self, name: str) -> str:
        return self._tensor(name, self._weights[name])

    def _tensor(self, name: str, values: Vectors) -> str:
        self.tensors[name] = values
        return name

    def _ints(self, name: str, *values: int) -> str:
        return self._constant(name, np.array(values, np.int64))

    def _scalar(self, name: str, value: int) -> str:
        return self._constant(name, np.array(value, np.int64))

    def _float(self, name: str, value: float) -> str:
        return self._constant(name, np.array(value, np.float32))

    def _constant(self, name: str, value: npt.NDArray[Any]) -> str:
        from onnx import numpy_helper

        self._constants[name] = numpy_helper.from_array(value, name)
        return name


def _external(name: str, values: Vectors) -> Any:
    """Says that a tensor's values come from the session's options."""
    from onnx import TensorProto

    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=values.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights"), ("offset", "0"), ("length", str(values.nbytes))):
        tensor.external_data.add(key=key, value=value)
    return tensor
