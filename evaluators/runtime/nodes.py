"""Builds ONNX graphs over a model's weights, without torch and without exported files."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.runtime.weights import Weights
from ragtide.evaluators.spec import Vectors

Tensor = npt.NDArray[Any]
Shape = tuple[str | int, ...]
_OPSET, _IR = 20, 10  # the first with Gelu; both read by onnxruntime >= 1.18


class Nodes:
    """Nodes and the weights that they name; the weights are handed to the session, not written into the graph.

    In int8 each column of a weight has a scale of its own, and so has each token of what it is multiplied with: one
    scale for a whole batch, as ONNX Runtime's own tool would give it, makes a text's score depend on its neighbours.
    """

    def __init__(self, weights: Weights, int8: bool = False) -> None:
        self._weights = weights
        self._int8 = int8
        self._nodes: list[Any] = []
        self._constants: dict[str, Any] = {}
        self.tensors: dict[str, Tensor] = {}

    def model(self, inputs: dict[str, tuple[type[np.generic], Shape]], output: str, name: str, shape: Shape) -> bytes:
        """Serialise the model, with one named output. `tensors` holds its external weights by name."""
        from onnx import TensorProto, helper

        def value(name: str, dtype: type[np.generic], shape: Shape) -> Any:
            return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), list(shape))

        graph = helper.make_graph(
            [*self._nodes, helper.make_node("Identity", [output], [name])],
            "transformer",
            [value(given, dtype, shape) for given, (dtype, shape) in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))],
            [*self._constants.values(), *(_external(name, tensor) for name, tensor in self.tensors.items())],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR)
        return bytes(model.SerializeToString())

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator and return the name of its output."""
        from onnx import helper

        output = f"{kind}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def linear(self, x: str, name: str, exact: bool = False) -> str:
        """Add x W^T + b with the named weight and bias. `exact` keeps it in float32 when the rest is int8."""
        if self._int8 and not exact:
            product = self._product_int8(x, f"{name}.weight")
        else:
            turned = self.op("Transpose", self.weight(f"{name}.weight"), perm=[1, 0])  # folded once, by the session
            product = self.op("MatMul", x, turned)
        return self.op("Add", product, self.weight(f"{name}.bias"))

    def norm(self, x: str, name: str, epsilon: float) -> str:
        """Add layer normalisation over the last axis."""
        weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.op("LayerNormalization", x, weight, bias, axis=-1, epsilon=epsilon)

    def weight(self, name: str, row: int | None = None) -> str:
        """Add a tensor of the model, or one row of it."""
        values = self._weights[name]
        return self._tensor(name, values if row is None else values[row])

    def ints(self, name: str, *values: int) -> str:
        """Add a constant int64 vector."""
        return self._constant(name, np.array(values, np.int64))

    def scalar(self, name: str, value: int) -> str:
        """Add a constant int64."""
        return self._constant(name, np.array(value, np.int64))

    def float(self, name: str, value: float) -> str:
        """Add a constant float32."""
        return self._constant(name, np.array(value, np.float32))

    def _product_int8(self, x: str, name: str) -> str:
        """Add x W^T with integers: x = s (q - 128) with an s per token, W = t p with a t per column."""
        from onnx import TensorProto

        columns = quantize(self._weights[name])
        largest = self.op("ReduceMax", self.op("Abs", x), self.ints("last", -1), keepdims=1)
        scale = self.op("Mul", self.op("Max", largest, self.float("least", 1e-12)), self.float("step", 1 / 127))
        shifted = self.op("Add", self.op("Div", x, scale), self.float("shift", 128.5))  # casting cuts the fraction
        whole = self.op("Cast", shifted, to=TensorProto.UINT8)
        zero = self._constant("zero128", np.array(128, np.uint8))
        product = self.op("MatMulInteger", whole, self._tensor(f"{name}.int8", columns.whole), zero)
        scaled = self.op("Mul", self.op("Cast", product, to=TensorProto.FLOAT), scale)
        return self.op("Mul", scaled, self._tensor(f"{name}.scale", columns.scale))

    def _tensor(self, name: str, values: Tensor) -> str:
        self.tensors[name] = values
        return name

    def _constant(self, name: str, value: Tensor) -> str:
        from onnx import numpy_helper

        self._constants[name] = numpy_helper.from_array(value, name)
        return name


@dataclass(frozen=True, slots=True)
class QuantizedWeight:
    """A linear layer's weight [outputs, inputs] as `scale` times `whole`.

    Signed, for unsigned ones are no faster than floats. A processor without VNNI may lose the highest sums: what that
    costs, the check of the scores sees.
    """

    whole: npt.NDArray[np.int8]  # [inputs, outputs], -127 to 127
    scale: Vectors  # [outputs]


def quantize(weight: Vectors) -> QuantizedWeight:
    """Quantise the weight to int8, symmetric, with a scale per output. The error is at most half a step."""
    scale = np.maximum(np.abs(weight).max(axis=1), 1e-12) / 127
    whole = np.rint(weight / scale[:, None]).astype(np.int8)
    return QuantizedWeight(np.ascontiguousarray(whole.T), scale.astype(np.float32))


def _external(name: str, values: Tensor) -> Any:
    """Mark that a tensor's values come from the options of the session."""
    from onnx import TensorProto, helper

    tensor = TensorProto(name=name, data_type=helper.np_dtype_to_tensor_dtype(values.dtype), dims=values.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights"), ("offset", "0"), ("length", str(values.nbytes))):
        tensor.external_data.add(key=key, value=value)
    return tensor
