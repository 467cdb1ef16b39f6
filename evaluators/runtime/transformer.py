"""Transformers of the BERT family that the graph supports: shapes, and names of weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Layer:
    """Names of a layer's weights in the files of a family."""

    prefix: str = "encoder.layer.{}."
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    mixed: str = "attention.output.dense"
    mixed_norm: str = "attention.output.LayerNorm"
    inner: str = "intermediate.dense"
    outer: str = "output.dense"
    outer_norm: str = "output.LayerNorm"


BERT = Layer()
DISTILBERT = Layer(
    prefix="transformer.layer.{}.",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    mixed="attention.out_lin",
    mixed_norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    outer_norm="output_layer_norm",
)


@dataclass(frozen=True, slots=True)
class Transformer:
    """What the graph needs of a model."""

    family: str  # bert, distilbert or roberta
    hidden: int
    layers: int
    heads: int
    epsilon: float
    max_tokens: int
    kinds: int  # how many kinds of token it tells apart, 0 if it has no such table
    padding: int  # the token that fills up batches


_FAMILIES: Mapping[str, str] = MappingProxyType(
    {"bert": "bert", "distilbert": "distilbert", "roberta": "roberta", "xlm-roberta": "roberta"}
)
_RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "activation": "hidden_act",
    }
)


def differences(config: Mapping[str, Any]) -> list[str]:
    """Return the entries of a model's config.json that the graph cannot reproduce exactly. [] if there are none."""
    config = _normalise_names(config)
    family = config.get("model_type")
    if family not in _FAMILIES:
        return [f"its model_type is {family!r}, not {' or '.join(map(repr, _FAMILIES))}"]
    return [
        f"its {name} is {config.get(name, expected)!r}, not {expected!r}"
        for name, expected in (
            ("hidden_act", "gelu"),
            ("position_embedding_type", "absolute"),
            ("is_decoder", False),
        )
        if config.get(name, expected) != expected
    ]


def shape(config: Mapping[str, Any]) -> Transformer:
    """Return the model's shape, from a config.json without `differences`."""
    config = _normalise_names(config)
    family = _FAMILIES[config["model_type"]]
    padding = int(config.get("pad_token_id", 1 if family == "roberta" else 0) or 0)
    positions = int(config["max_position_embeddings"])
    return Transformer(
        family=family,
        hidden=config["hidden_size"],
        layers=config["num_hidden_layers"],
        heads=config["num_attention_heads"],
        epsilon=config.get("layer_norm_eps", 1e-12),
        max_tokens=positions - padding - 1 if family == "roberta" else positions,
        kinds=0 if family == "distilbert" else int(config.get("type_vocab_size", 2)),
        padding=padding,
    )


def _normalise_names(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Map DistilBERT's names to those of the other families."""
    if config.get("model_type") != "distilbert":
        return config
    return {_RENAMED.get(name, name): value for name, value in config.items()}
