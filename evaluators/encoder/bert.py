"""What a model folder says of its BERT encoder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evaluators.errors import ConfigError

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True)
class Bert:
    """What the graph needs to know of a model."""

    hidden: int
    layers: int
    heads: int
    epsilon: float
    pooling: Pooling
    max_tokens: int


def read(folder: Path) -> Bert:
    """The model's shape; raises `ConfigError` for one that this graph cannot reproduce exactly."""
    config = _json(folder / "config.json")
    sentence = _json(folder / "sentence_bert_config.json")
    wrong = [
        f"{name} is {config.get(name, default)!r}, not {expected!r}"
        for name, expected, default in (
            ("model_type", "bert", None),
            ("hidden_act", "gelu", "gelu"),
            ("position_embedding_type", "absolute", "absolute"),
        )
        if config.get(name, default) != expected
    ]
    modules = _json(folder / "modules.json") or []
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    wrong += [f"it has a module {kind}" for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]
    wrong += ["it lower-cases text itself"] if sentence.get("do_lower_case") else []
    pooled = next((m["path"] for m in modules if str(m.get("type", "")).endswith(".Pooling")), None)
    pooling = _pooling(_json(folder / pooled / "config.json")) if pooled else "mean"
    if wrong or pooling is None:
        why = "; ".join(wrong or ["its pooling is neither mean nor cls"])
        raise ConfigError(
            f"model {folder.name!r} cannot run on the onnx backend: {why}. "
            "Set evaluators.encoder.backend to sentence-transformers (pip install 'ragwatch[models]')"
        )
    positions = int(config["max_position_embeddings"])
    return Bert(
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        epsilon=config["layer_norm_eps"],
        pooling=pooling,
        max_tokens=min(int(sentence.get("max_seq_length") or positions), positions),
    )


def _pooling(config: Mapping[str, Any]) -> Pooling | None:
    modes = {name.removeprefix("pooling_mode_") for name, on in config.items() if on is True and "_mode_" in name}
    modes |= {config["pooling_mode"]} if isinstance(config.get("pooling_mode"), str) else set()
    if modes in ({"mean_tokens"}, {"mean"}, set()):
        return "mean"
    return "cls" if modes in ({"cls_token"}, {"cls"}) else None


def _json(path: Path) -> Any:
    """The file's content, {} where there is none."""
    return json.loads(path.read_text("utf-8")) if path.is_file() else {}
