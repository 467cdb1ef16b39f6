"""What only a GPU does: bfloat16, pinned copies beside compute, a batch size that is measured, memory that ends.

`pytest -m gpu` runs it; every other run of tests sees no card.
"""

import logging
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from evaluators.encoder import load_encoder
from evaluators.models import Model, load
from evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings, ModelSettings
from evaluators.spec import ModelRef, Need, Vectors
from tests.evaluators.models.tiny import LABELS, classifier


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


pytestmark = [pytest.mark.models, pytest.mark.gpu, pytest.mark.skipif(not _has_gpu(), reason="no NVIDIA GPU")]

TEXTS = ["The router has a button.", "Paris is the capital of France.", "", "x " * 300] * 200
ASKS = [(text, "Is it rude?") for text in TEXTS]


def made(folder: Path, device: str, **chosen: object) -> Model:
    given = {"backend": "torch", "device": device, **chosen}
    settings = EvaluatorSettings(models={str(folder): ModelSettings.model_validate(given)})
    return load(ModelRef(Need.NLI, str(folder), LABELS), settings)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "deberta-v2", "albert"])
def test_a_card_gives_what_a_cpu_gives(tmp_path: Path, kind: str) -> None:
    folder = classifier(tmp_path / kind, kind)
    expected = made(folder, "cpu").answer(ASKS)
    exact, half = made(folder, "cuda", dtype="float32"), made(folder, "cuda")
    np.testing.assert_allclose(exact.answer(ASKS), expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(half.answer(ASKS), expected, rtol=0, atol=2e-2)
    assert half.revision == exact.revision


def test_the_encoder_gives_what_it_gives_on_a_cpu() -> None:
    def encoded(device: str, **chosen: str) -> Vectors:
        given = {"backend": "sentence-transformers", "model": PACKAGED_MODEL, "device": device, **chosen}
        return load_encoder(EncoderSettings.model_validate(given)).encode(TEXTS)

    np.testing.assert_allclose(encoded("cuda", dtype="float32"), encoded("cpu"), rtol=0, atol=1e-4)
    np.testing.assert_allclose(encoded("cuda"), encoded("cpu"), rtol=0, atol=2e-2)


def test_where_the_cards_memory_ends_less_is_read_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    import torch

    folder = classifier(tmp_path / "bert", "bert")
    expected = made(folder, "cpu").answer(ASKS)
    model = made(folder, "cuda", dtype="float32", batch_tokens=1 << 20)
    torch.cuda.empty_cache()
    room = torch.cuda.memory_allocated() + (64 << 20)
    torch.cuda.set_per_process_memory_fraction(room / torch.cuda.get_device_properties(0).total_memory)
    try:
        with caplog.at_level(logging.WARNING):
            given = model.answer(ASKS * 20)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    np.testing.assert_allclose(given, np.tile(expected, (20, 1)), rtol=0, atol=1e-4)
    assert "out of memory" in caplog.text
