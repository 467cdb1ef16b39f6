"""Weights that TensorFlow wrote give the logits that TensorFlow computed with them.

The files are random weights that transformers 4.41 saved from TensorFlow 2.15, as were the logits below.
"""

import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models.convert import convert_weights
from ragtide.evaluators.models.tensorflow import WEIGHTS, tensor_name

pytestmark = pytest.mark.models

IDS, MASK = [[2, 5, 6, 7, 3], [2, 9, 3, 0, 0]], [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
LOGITS = {
    "distilbert": [[0.3016851544380188, -0.7221543788909912], [0.30267685651779175, -0.7056915760040283]],
    "bert": [[1.7027517557144165, 1.9327733516693115], [1.6501007080078125, 1.948311448097229]],
}
CONFIGS: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 12},
    "bert": {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12},
}


def saved(folder: Path, kind: str) -> Path:
    config = {"model_type": kind, "vocab_size": 12, "max_position_embeddings": 8, **CONFIGS[kind]}
    (folder / "config.json").write_text(json.dumps(config))
    held = Path(__file__).with_name(f"tiny_{kind}_tf_model.h5.xz").read_bytes()
    (folder / WEIGHTS).write_bytes(lzma.decompress(held))
    return folder


@pytest.mark.parametrize("kind", LOGITS)
def test_converted_weights_give_tensorflows_logits(tmp_path: Path, kind: str) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification

    folder = saved(tmp_path, kind)
    assert convert_weights(folder).name == "model.safetensors"
    model, told = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert not told["missing_keys"]
    assert not told["unexpected_keys"]
    with torch.inference_mode():
        logits = model.eval()(torch.tensor(IDS), attention_mask=torch.tensor(MASK)).logits.numpy()
    np.testing.assert_allclose(logits, LOGITS[kind], rtol=0, atol=1e-5)


def test_a_tensor_is_named_as_in_torch() -> None:
    at = "distilbert/tf_distil_bert_for_sequence_classification/distilbert/transformer/layer_._11/ffn/lin1/"
    assert tensor_name(f"{at}kernel:0") == ("distilbert.transformer.layer.11.ffn.lin1.weight", True)
    assert tensor_name(f"{at}bias:0") == ("distilbert.transformer.layer.11.ffn.lin1.bias", False)


def _claims_more(folder: Path) -> None:
    import h5py

    with h5py.File(folder / WEIGHTS, "w") as file:
        file.create_dataset("a/b/c/kernel:0", (1 << 20, 1 << 20), "f4", chunks=(1024, 1024), compression="gzip")


def _points_elsewhere(folder: Path) -> None:
    import h5py

    (folder / "secret").write_bytes(b"1234")
    with h5py.File(folder / WEIGHTS, "w") as file:
        file.create_dataset("a/b/c/bias:0", (1,), "f4", external=[(str(folder / "secret"), 0, 4)])


def _holds_text(folder: Path) -> None:
    import h5py

    with h5py.File(folder / WEIGHTS, "w") as file:
        file["a/b/c/bias:0"] = "text"


def _another_family(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "t5"}')


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:9_000]), "incomplete"),
        (lambda folder: (folder / WEIGHTS).write_bytes(b"no HDF5"), "incomplete"),
        (_claims_more, "holds more than"),
        (_points_elsewhere, "holds more than"),
        (_holds_text, "holds more than"),
        (_another_family, "is of a t5; weights of TensorFlow are read for bert and distilbert only"),
    ],
)
def test_what_holds_no_models_weights_is_refused_and_leaves_nothing(
    tmp_path: Path, break_it: Callable[[Path], object], says: str
) -> None:
    folder = saved(tmp_path, "distilbert")
    break_it(folder)
    with pytest.raises(ConfigError, match=says):
        convert_weights(folder)
    assert not list(folder.glob("model.safetensors*"))
