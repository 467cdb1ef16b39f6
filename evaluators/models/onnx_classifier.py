"""Reads a classifier of the BERT family from a folder, and builds it as an ONNX graph."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models.files import ModelFiles
from ragtide.evaluators.models.labels import configuration
from ragtide.evaluators.runtime.graph import hidden_states, inputs
from ragtide.evaluators.runtime.nodes import Nodes
from ragtide.evaluators.runtime.transformer import Transformer, differences, shape
from ragtide.evaluators.settings import ModelSettings

# Of transformers: the tokenizers that put both texts of a pair down as one kind, and those that tell them apart.
_ONE_KIND = ("DistilBert", "Roberta", "XLMRoberta", "Camembert")
_TWO_KINDS = ("Bert", "PreTrainedTokenizerFast", "TokenizersBackend")


@dataclass(frozen=True, slots=True)
class Classifier:
    """A transformer with the head of its family's `ForSequenceClassification`."""

    transformer: Transformer
    max_tokens: int
    kinds: bool  # whether it is told which tokens are of which text

    def graph(self, nodes: Nodes) -> bytes:
        """Build a graph with the output `logits` [batch, labels]."""
        hidden = hidden_states(nodes, self.transformer, self.kinds)
        first = nodes.op("Gather", hidden, nodes.scalar("first", 0), axis=1)
        family = self.transformer.family
        if family == "bert":
            logits = _head(nodes, first, "pooler.dense", "Tanh", "classifier")
        elif family == "roberta":
            logits = _head(nodes, first, "classifier.dense", "Tanh", "classifier.out_proj")
        else:
            logits = _head(nodes, first, "pre_classifier", "Relu", "classifier")
        return nodes.model(inputs(self.transformer, self.kinds), logits, "logits", ("batch", "labels"))


def why_not(files: ModelFiles, settings: ModelSettings) -> str | None:
    """Return why the graph cannot reproduce the model exactly, so that it needs torch. None if it can."""
    config, tokenizer = configuration(files.folder), _tokenizer(files.folder)
    unsupported = differences(config)
    unsupported += ["its code may run, which only torch does"] if settings.remote_code and "auto_map" in config else []
    unsupported += ["it is set to run in bfloat16"] if settings.dtype == "bfloat16" else []
    for name in ("tokenizer.json", "model.safetensors"):
        unsupported += [] if (files.folder / name).is_file() else [f"it has no {name}"]
    kind = str(tokenizer.get("tokenizer_class", ""))
    known = (*_ONE_KIND, *_TWO_KINDS)
    unsupported += [f"its tokenizer is a {kind}"] if kind and not kind.startswith(known) else []
    return "; ".join(unsupported) or None


def read(files: ModelFiles) -> Classifier:
    """Read the classifier of a folder without faults in `why_not`."""
    transformer = shape(configuration(files.folder))
    tokenizer = _tokenizer(files.folder)
    one_kind = str(tokenizer.get("tokenizer_class", "")).startswith(_ONE_KIND)
    given = tokenizer.get("model_input_names") or ([] if one_kind else ["token_type_ids"])
    most = min(int(tokenizer.get("model_max_length") or transformer.max_tokens), transformer.max_tokens)
    return Classifier(transformer, most, kinds=transformer.kinds > 1 and "token_type_ids" in given)


def _head(nodes: Nodes, first: str, inner: str, activation: str, outer: str) -> str:
    return nodes.linear(nodes.op(activation, nodes.linear(first, inner, exact=True)), outer, exact=True)


def _tokenizer(folder: Path) -> Mapping[str, Any]:
    """Read tokenizer_config.json, {} if it does not exist. Raises `ConfigError`."""
    path = folder / "tokenizer_config.json"
    try:
        configuration = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON; fetch the model again") from error
    return configuration if isinstance(configuration, dict) else {}
