"""What only a GPU does: bfloat16, pinned copies beside compute, a batch size that is measured, memory that ends.

`pytest -m gpu` runs it; every other run of tests sees no card.
"""

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models import Model, load
from ragtide.evaluators.models.causal import CausalModel
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.runtime.card_memory import cards_in_use, limit_cards
from ragtide.evaluators.runtime.torch_device import device_of
from ragtide.evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import ModelRef, Need, Vectors
from ragtide.stream.telemetry.memory import show
from ragtide.stream.telemetry.registry import Telemetry
from tests.evaluators.models import tiny_causal
from tests.evaluators.models.tiny import LABELS, classifier


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


pytestmark = [pytest.mark.models, pytest.mark.gpu, pytest.mark.skipif(not _has_gpu(), reason="no NVIDIA GPU")]

TEXTS = ["The router has a button.", "Paris is the capital of France.", "", "x " * 300] * 200
ASKS = [(text, "Is it rude?") for text in TEXTS]
ROOM_BYTES = 64 << 20


def of(folder: Path, device: str, **chosen: object) -> EvaluatorSettings:
    given = {"backend": "torch", "device": device, **chosen}
    return EvaluatorSettings(models={str(folder): ModelSettings.model_validate(given)})


def made(folder: Path, device: str, **chosen: object) -> Model:
    return load(ModelRef(Need.NLI, str(folder), LABELS), of(folder, device, **chosen))


def language_model(folder: Path, device: str, **chosen: object) -> CausalModel:
    model = load(ModelRef(Need.LM, str(folder)), of(folder, device, **chosen))
    assert isinstance(model, CausalModel)
    return model


@contextmanager
def bounded(room_bytes: int) -> Iterator[None]:
    """So much beyond what is taken now, and no more, until it ends."""
    import torch

    gc.collect()  # the models of tests before
    torch.cuda.empty_cache()
    limit_cards(torch.cuda.memory_reserved() + room_bytes)
    device_of("cuda")
    try:
        yield
    finally:
        limit_cards(None)
        torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "deberta-v2", "albert"])
def test_a_card_gives_what_a_cpu_gives(tmp_path: Path, kind: str) -> None:
    folder = classifier(tmp_path / kind, kind)
    expected = made(folder, "cpu").answer(ASKS)
    exact, half = made(folder, "cuda", dtype="float32"), made(folder, "cuda")
    np.testing.assert_allclose(exact.answer(ASKS), expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(half.answer(ASKS), expected, rtol=0, atol=2e-2)
    assert half.revision == exact.revision


@pytest.mark.parametrize("kind", ["gpt2", "llama", "opt", "bloom"])
def test_a_language_model_gives_what_it_gives_on_a_cpu(tmp_path: Path, kind: str) -> None:
    folder = tiny_causal.causal(tmp_path / kind, kind)
    expected = language_model(folder, "cpu").answer(tiny_causal.ASKS)
    exact = language_model(folder, "cuda", dtype="float32").answer(tiny_causal.ASKS)
    np.testing.assert_allclose(exact, expected, rtol=1e-4, atol=1e-4)
    tiny_causal.assert_near(language_model(folder, "cuda").answer(tiny_causal.ASKS), expected)


def test_logits_as_large_as_those_of_real_models_keep_their_digits(tmp_path: Path) -> None:
    import torch

    model = language_model(tiny_causal.causal(tmp_path / "gpt2"), "cuda")
    with torch.inference_mode():
        words = model._head.weight
        logits = model._logits(16 * words)
        exact = 16 * words.double() @ words.double().T
    assert exact.abs().max() > 32, "smaller ones have digits enough in bfloat16"
    assert (logits - exact).abs().max() < 1e-3


def test_the_encoder_gives_what_it_gives_on_a_cpu() -> None:
    def encoded(device: str, **chosen: str) -> Vectors:
        given = {"backend": "sentence-transformers", "model": PACKAGED_MODEL, "device": device, **chosen}
        return load_encoder(EncoderSettings.model_validate(given)).encode(TEXTS)

    np.testing.assert_allclose(encoded("cuda", dtype="float32"), encoded("cpu"), rtol=0, atol=1e-4)
    np.testing.assert_allclose(encoded("cuda"), encoded("cpu"), rtol=0, atol=2e-2)


def test_where_the_cards_memory_ends_less_is_read_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = classifier(tmp_path / "bert", "bert")
    expected = made(folder, "cpu").answer(ASKS)
    model = made(folder, "cuda", dtype="float32", batch_tokens=1 << 20)
    with bounded(ROOM_BYTES), caplog.at_level(logging.WARNING):
        given = model.answer(ASKS * 20)
        [card] = cards_in_use()
        assert ROOM_BYTES / 4 < card.reserved_bytes <= card.limit_bytes < 2 * ROOM_BYTES
    np.testing.assert_allclose(given, np.tile(expected, (20, 1)), rtol=0, atol=1e-4)
    assert "out of memory" in caplog.text


def test_a_model_that_does_not_fit_is_refused_in_words(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "bert", "bert", intermediate_size=1 << 18)
    refused = pytest.raises(ConfigError, match=r"the model .* does not fit on cuda:0: .*aise evaluators.card_bytes")
    with bounded(ROOM_BYTES), refused:
        made(folder, "cuda", dtype="float32")


def test_what_a_lane_takes_of_the_card_is_a_metric(tmp_path: Path) -> None:
    folder = classifier(tmp_path / "bert", "bert")
    ref, settings = ModelRef(Need.NLI, str(folder), LABELS), of(folder, "cuda")
    resources, telemetry = Resources(models={ref: load(ref, settings)}), Telemetry()
    show(telemetry, "model", resources, settings)

    def told(name: str) -> float:
        value = telemetry.registry.get_sample_value(f"ragtide_{name}", {"lane": "model", "card": "cuda:0"})
        assert value is not None
        return value

    assert 0 < told("card_bytes") < told("card_limit_bytes")
