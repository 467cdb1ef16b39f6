"""Reads a folder in sentence-transformers' format, and builds its encoder as an ONNX graph."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime.graph import hidden_states, inputs
from ragtide.evaluators.runtime.nodes import Nodes
from ragtide.evaluators.runtime.transformer import Transformer, differences, shape

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class SentenceEncoder:
    """A transformer with pooling."""

    transformer: Transformer
    pooling: Pooling
    max_tokens: int

    def graph(self, nodes: Nodes) -> bytes:
        """Build a graph with the output `vectors` [batch, hidden], pooled and of unit length."""
        hidden = hidden_states(nodes, self.transformer)
        pooled = _first(nodes, hidden) if self.pooling == "cls" else _mean(nodes, hidden)
        unit = nodes.op("LpNormalization", pooled, axis=-1, p=2)
        return nodes.model(inputs(self.transformer), unit, "vectors", ("batch", self.transformer.hidden))


def read(folder: Path) -> SentenceEncoder:
    """Read the encoder. Raises `ConfigError` if the graph cannot reproduce it exactly."""
    config = _json(folder / "config.json")
    sentence = _json(folder / "sentence_bert_config.json")
    unsupported = differences(config)
    modules = _json(folder / "modules.json") or []
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    unsupported += [f"it has a module {kind}" for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    unsupported += ["it lower-cases text itself"] if sentence.get("do_lower_case") else []
    pooled = next((m["path"] for m in modules if str(m.get("type", "")).endswith(".Pooling")), None)
    pooling = _pooling(_json(folder / pooled / "config.json")) if pooled else "mean"
    if unsupported or pooling is None:
        why = "; ".join(unsupported or ["its pooling is neither mean nor cls"])
        raise ConfigError(
            f"model {folder.name!r} cannot run on the onnx backend: {why}. "
            "Set evaluators.encoder.backend to sentence-transformers (pip install 'ragtide[models]')"
        )
    transformer = shape(config)
    own = sentence.get("max_seq_length") or _json(folder / "tokenizer_config.json").get("model_max_length")
    return SentenceEncoder(transformer, pooling, min(int(own or transformer.max_tokens), transformer.max_tokens))


def _first(nodes: Nodes, hidden: str) -> str:
    return nodes.op("Gather", hidden, nodes.scalar("first", 0), axis=1)


def _mean(nodes: Nodes, hidden: str) -> str:
    from onnx import TensorProto

    wide = nodes.op("Unsqueeze", nodes.op("Cast", "mask", to=TensorProto.FLOAT), nodes.ints("axis2", 2))
    axis = nodes.ints("axis1", 1)
    total = nodes.op("ReduceSum", nodes.op("Mul", hidden, wide), axis, keepdims=0)
    return nodes.op("Div", total, nodes.op("ReduceSum", wide, axis, keepdims=0))


def _pooling(config: Mapping[str, Any]) -> Pooling | None:
    modes = {name.removeprefix("pooling_mode_") for name, on in config.items() if on is True and "_mode_" in name}
    modes |= {config["pooling_mode"]} if isinstance(config.get("pooling_mode"), str) else set()
    if modes in ({"mean_tokens"}, {"mean"}, set()):
        return "mean"
    return "cls" if modes in ({"cls_token"}, {"cls"}) else None


def _json(path: Path) -> Any:
    """Read a JSON file, {} if it does not exist."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}
