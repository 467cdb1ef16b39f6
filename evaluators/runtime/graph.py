"""A transformer of the BERT family as part of an ONNX graph: from tokens to the vectors of its last layer."""

import math

import numpy as np

from ragtide.evaluators.runtime.nodes import Nodes, Shape
from ragtide.evaluators.runtime.transformer import BERT, DISTILBERT, Layer, Transformer

WORDS = "embeddings.word_embeddings.weight"


def hidden_states(nodes: Nodes, model: Transformer, kinds: bool = False) -> str:
    """Build the last layer's [batch, length, hidden], from inputs `ids`, `mask`, `words` and, if `kinds`, `kinds`."""
    from onnx import TensorProto

    hidden = _embeddings(nodes, model, kinds)
    mask = nodes.op("Cast", "mask", to=TensorProto.FLOAT)
    off = nodes.op("Sub", nodes.op("Unsqueeze", mask, nodes.ints("axes12", 1, 2)), nodes.float("one", 1.0))
    bias = nodes.op("Mul", off, nodes.float("far", 1e9))
    names = DISTILBERT if model.family == "distilbert" else BERT
    for place in range(model.layers):
        hidden = _layer(nodes, model, names, hidden, bias, names.prefix.format(place))
    return hidden


def inputs(model: Transformer, kinds: bool = False) -> dict[str, tuple[type[np.generic], Shape]]:
    """Declare the inputs of `hidden_states`.

    The word table (half of MiniLM's weights) is an input so that it can stay in its file: only rows of words that occur
    are read.
    """
    tokens: Shape = ("batch", "length")
    read: dict[str, tuple[type[np.generic], Shape]] = {"ids": (np.int64, tokens), "mask": (np.int64, tokens)}
    if kinds:
        read["kinds"] = (np.int64, tokens)
    return read | {"words": (np.float32, ("vocabulary", model.hidden))}


def _embeddings(nodes: Nodes, model: Transformer, kinds: bool) -> str:
    summed = nodes.op("Add", nodes.op("Gather", "words", "ids"), _positions(nodes, model))
    if kinds:
        table = nodes.weight("embeddings.token_type_embeddings.weight")
        summed = nodes.op("Add", summed, nodes.op("Gather", table, "kinds"))
    elif model.kinds:
        summed = nodes.op("Add", summed, nodes.weight("embeddings.token_type_embeddings.weight", row=0))
    return nodes.norm(summed, "embeddings.LayerNorm", model.epsilon)


def _positions(nodes: Nodes, model: Transformer) -> str:
    """Return position vectors: [length, hidden], or [batch, length, hidden] if positions start at the padding token."""
    from onnx import TensorProto

    table = nodes.weight("embeddings.position_embeddings.weight")
    if model.family != "roberta":
        length = nodes.op("Gather", nodes.op("Shape", "ids"), nodes.ints("second", 1), axis=0)
        return nodes.op("Slice", table, nodes.ints("zero", 0), length, nodes.ints("zero", 0))
    padding = nodes.scalar("padding", model.padding)
    words = nodes.op("Cast", nodes.op("Not", nodes.op("Equal", "ids", padding)), to=TensorProto.INT64)
    counted = nodes.op("Mul", nodes.op("CumSum", words, nodes.scalar("across", 1)), words)
    return nodes.op("Gather", table, nodes.op("Add", counted, padding))


def _layer(nodes: Nodes, model: Transformer, names: Layer, hidden: str, bias: str, at: str) -> str:
    size = model.hidden // model.heads
    split = nodes.ints("split", 0, 0, model.heads, size)

    def heads(part: str, perm: list[int]) -> str:
        return nodes.op("Transpose", nodes.op("Reshape", nodes.linear(hidden, at + part), split), perm=perm)

    query, key = heads(names.query, [0, 2, 1, 3]), heads(names.key, [0, 2, 3, 1])
    scaled = nodes.op("Mul", nodes.op("MatMul", query, key), nodes.float("scale", 1 / math.sqrt(size)))
    attention = nodes.op("Softmax", nodes.op("Add", scaled, bias), axis=-1)
    mixed = nodes.op("Transpose", nodes.op("MatMul", attention, heads(names.value, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    merged = nodes.op("Reshape", mixed, nodes.ints("merge", 0, 0, model.hidden))
    attended = nodes.op("Add", nodes.linear(merged, at + names.mixed), hidden)
    hidden = nodes.norm(attended, at + names.mixed_norm, model.epsilon)
    inner = nodes.op("Gelu", nodes.linear(hidden, at + names.inner))
    return nodes.norm(
        nodes.op("Add", nodes.linear(inner, at + names.outer), hidden), at + names.outer_norm, model.epsilon
    )
