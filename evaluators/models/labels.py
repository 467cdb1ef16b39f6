"""Selects outputs of a classifier by label, and turns them into probabilities."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models.files import ModelFiles
from ragtide.evaluators.models.known_models import SYNONYMS
from ragtide.evaluators.spec import ModelRef, Vectors


@dataclass(frozen=True, slots=True)
class Labels:
    """The indices of the selected outputs, of a model with `outputs` logits."""

    places: tuple[int, ...]
    outputs: int
    sigmoid: bool

    def probabilities(self, logits: Vectors) -> Vectors:
        """Return the probability of each selected label, float32 [n, len(places)], from logits [n, outputs].

        Exclusive labels share one softmax over all outputs of the model. Others have a sigmoid each.
        """
        exact = np.asarray(logits, np.float64)
        if self.sigmoid:
            given = 1 / (1 + np.exp(-np.clip(exact, -700, 700)))
        else:
            powers = np.exp(exact - exact.max(axis=1, keepdims=True))
            given = powers / powers.sum(axis=1, keepdims=True)
        return np.asarray(given[:, self.places], np.float32)


def labels_of(ref: ModelRef, files: ModelFiles) -> Labels:
    """Find the wanted labels in the model. Raises `ConfigError` with the labels that it has."""
    config = configuration(files.folder)
    own = _own_labels(config)
    multi_label = files.source.multi_label or config.get("problem_type") == "multi_label_classification"
    if not ref.labels:
        if len(own) != 1:
            raise ConfigError(f"{_model(files)} gives {len(own)} scores ({', '.join(own)}); one is asked for")
        return Labels((0,), 1, sigmoid=True)
    places = {_plain(label): place for place, label in reversed(list(enumerate(own)))}
    places = {SYNONYMS.get(label, label): place for label, place in places.items()} | places
    missing = [label for label in ref.labels if _plain(label) not in places]
    if missing:
        raise ConfigError(
            f"{_model(files)} has no label {' and '.join(missing)}; it has {', '.join(own)}. Another model gives them, "
            "or id2label in its config.json must say which output is which"
        )
    return Labels(tuple(places[_plain(label)] for label in ref.labels), len(own), multi_label or len(own) == 1)


def configuration(folder: Path) -> Mapping[str, Any]:
    """Read config.json. Raises `ConfigError` if it is no JSON object."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except ValueError as error:
        raise ConfigError(f"{folder / 'config.json'} is not JSON; fetch the model again") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{folder / 'config.json'} is not a JSON object; fetch the model again")
    return config


def _own_labels(config: Mapping[str, Any]) -> Sequence[str]:
    names = config.get("id2label") or {place: f"LABEL_{place}" for place in range(config.get("num_labels", 2))}
    return [str(names[place]) for place in sorted(names, key=int)]


def _plain(label: str) -> str:
    return " ".join(label.lower().replace("_", " ").replace("-", " ").split())


def _model(files: ModelFiles) -> str:
    return f"the model {files.source.name} ({files.source.place})"
