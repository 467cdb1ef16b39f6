"""Language models: what a plain loop over transformers gives, in fewer and larger forward passes."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models import load, revision_of
from ragtide.evaluators.models.causal import MOST_WINDOWS, CausalModel
from ragtide.evaluators.settings import EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import Ask, ModelRef, Need
from tests.evaluators.models.tiny_causal import ASKS, BOTH, CONTEXT, LONG, assert_near, causal

pytestmark = pytest.mark.models

TOLERANCE = 1e-4


def model(folder: Path, **chosen: Any) -> CausalModel:
    made = load(ModelRef(Need.LM, str(folder)), EvaluatorSettings(models={str(folder): ModelSettings(**chosen)}))
    assert isinstance(made, CausalModel)
    return made


Folders = Callable[[str], Path]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "with a beginning": ("llama", {"begins": True, "pad_token_id": 0}),
    "grouped heads": ("llama", {"num_key_value_heads": 1}),
    "opt": ("opt", {}),
    "alibi": ("bloom", {}),
    "sees so far": ("mistral", {"sliding_window": 16, "num_key_value_heads": 2}),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    made: dict[str, Path] = {}

    def folder(name: str) -> Path:
        if name not in made:
            kind, config = KINDS[name]
            made[name] = causal(tmp_path_factory.mktemp("models") / "tiny", kind, **config)
        return made[name]

    return folder


@pytest.fixture(scope="module")
def gpt2(folders: Folders) -> CausalModel:
    return model(folders("gpt2"))


class Plainly:
    """transformers, one text at a time, without batches, padding, shared beginnings or parts of the output."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.model = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def losses(self, tokens: Sequence[int]) -> list[float]:
        """Of every token but the first."""
        import torch

        with torch.inference_mode():
            logits = self.model(torch.tensor([tokens])).logits[0]
        return [-float(logits[i - 1].log_softmax(-1)[tokens[i]]) for i in range(1, len(tokens))]

    def answer(self, ask: Ask) -> list[float]:
        encoded = self.tokenizer("".join(ask), return_offsets_mapping=True)
        tokens, places = encoded["input_ids"], encoded["offset_mapping"]
        if len(ask) == 1:
            return self.slid(tokens)
        tail = [end > len(ask[0]) for _, end in places]
        scored = [loss for loss, mine in zip(self.losses(tokens), tail[1:], strict=True) if mine]
        return [sum(scored), len(scored)]

    def slid(self, tokens: list[int]) -> list[float]:
        """As Hugging Face's guide to perplexity, sums in place of its means."""
        total, count, scored = 0.0, 0, 1
        for begin in range(0, len(tokens), CONTEXT // 2):
            end = min(begin + CONTEXT, len(tokens))
            new = self.losses(tokens[begin:end])[max(0, scored - begin - 1) :]
            total, count, scored = total + sum(new), count + len(new), end
            if end == len(tokens):
                break
        return [total, count]


@pytest.mark.parametrize("name", KINDS)
def test_answers_are_those_of_a_plain_loop(name: str, folders: Folders) -> None:
    plainly = Plainly(folders(name))
    expected = [plainly.answer(ask) for ask in ASKS]
    assert model(folders(name)).answer(ASKS) == pytest.approx(np.array(expected), rel=TOLERANCE)


@pytest.mark.parametrize(("name", "shares"), [("gpt2", True), ("opt", True), ("alibi", False), ("sees so far", False)])
def test_beginnings_are_shared_where_the_model_can(name: str, shares: bool, folders: Folders) -> None:
    asks = [(BOTH, tail) for tail in ("Yes", "No way", "Why not? " * 4, "Yes, and no")]
    one = model(folders(name))
    rows: list[int] = []
    forward = one._batches._forward

    def counted(sheet: dict[str, Any]) -> Any:
        rows.append(len(sheet["ids"]))
        return forward(sheet)

    one._batches._forward = counted
    together = one.answer(asks)
    assert (sum(rows) == 1) == shares
    assert together == pytest.approx(np.concatenate([one.answer([ask]) for ask in asks]), rel=TOLERANCE)


@settings(max_examples=30, deadline=None)
@given(
    asks=st.lists(st.sampled_from([*ASKS, ("",), ("x " * 3_000,), (LONG, "b"), ("\ud800\x00", "\udfff")]), max_size=12)
)
def test_a_batch_says_what_each_of_it_says_alone(gpt2: CausalModel, asks: list[Ask]) -> None:
    together = gpt2.answer(asks)
    assert together.shape == (len(asks), 2)
    for row, ask in zip(together, asks, strict=True):
        assert row == pytest.approx(gpt2.answer([ask])[0], rel=TOLERANCE, nan_ok=True)


def test_what_does_not_fit_is_no_number(gpt2: CausalModel) -> None:
    token = " button"
    fits = CONTEXT // 2 * (MOST_WINDOWS + 1)
    said = gpt2.answer(
        [(token * fits,), (token * (fits + 1),), (token * (CONTEXT - 1), token), (token * CONTEXT, token)]
    )
    assert said[:, 1].tolist() == pytest.approx([fits - 1, np.nan, 1, np.nan], nan_ok=True)
    assert np.isnan(said[:, 0]).tolist() == [False, True, False, True]


def test_without_a_token_before_it_the_first_is_not_scored(folders: Folders, gpt2: CausalModel) -> None:
    assert gpt2.answer([("a",), ("",), ("", "a")]).tolist() == [[0, 0]] * 3
    assert model(folders("with a beginning")).answer([("a",), ("", "a")])[:, 1].tolist() == [1, 1]


def test_a_text_cannot_end_the_text(gpt2: CausalModel) -> None:
    [[_, special]] = gpt2.answer([("Yes", "<|endoftext|>")])
    assert special > 1, "its letters, not the token that they name"


def test_threads_may_ask_at_once(gpt2: CausalModel) -> None:
    with ThreadPoolExecutor(4) as threads:
        for said in threads.map(gpt2.answer, [ASKS] * 8):
            assert said == pytest.approx(gpt2.answer(ASKS), rel=TOLERANCE)


def test_memory_that_runs_out_is_met_with_halves(folders: Folders) -> None:
    import torch

    one = model(folders("gpt2"))
    expected = one.answer(ASKS)
    forward = one._batches._forward

    def small(sheet: dict[str, Any]) -> Any:
        if len(sheet["ids"]) > 1:
            raise torch.OutOfMemoryError
        return forward(sheet)

    one._batches._forward = small
    assert one.answer(ASKS) == pytest.approx(expected, rel=TOLERANCE)
    assert one._batches.batch_tokens < 1024


@pytest.mark.parametrize("kind", KINDS)
def test_half_the_digits_move_an_average_by_a_fiftieth_at_most(folders: Folders, kind: str) -> None:
    assert_near(model(folders(kind), dtype="bfloat16").answer(ASKS), model(folders(kind)).answer(ASKS))


def test_logits_as_far_from_zero_as_real_ones_are_taken_and_keep_their_digits(tmp_path: Path) -> None:
    """Those of GPT-2 lie around -50 to -100, where bfloat16 knows quarters and halves."""
    from safetensors.torch import load_file, save_file

    folder = causal(tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    weights["transformer.wte.weight"][:, 0] = 1.0
    weights["transformer.ln_f.weight"][0] = 0.0
    weights["transformer.ln_f.bias"][0] = 0.0
    near_zero, far = tmp_path / "near", tmp_path / "far"
    for made, shift in ((near_zero, 0.0), (far, -100.0)):
        shutil.copytree(folder, made)
        weights["transformer.ln_f.bias"][0] = shift
        save_file(weights, made / "model.safetensors", metadata={"format": "pt"})
    full, rounded = model(far), model(far, dtype="bfloat16")
    assert full.answer(ASKS) == pytest.approx(model(near_zero).answer(ASKS), rel=TOLERANCE)
    assert_near(rounded.answer(ASKS), full.answer(ASKS))


def test_the_revision_is_told_without_loading(folders: Folders, gpt2: CausalModel) -> None:
    assert gpt2.revision == revision_of(ModelRef(Need.LM, str(folders("gpt2"))), EvaluatorSettings())


def test_what_is_no_language_model_is_refused(tmp_path: Path) -> None:
    for kind, says in (("bert", "later tokens change"), ("cohere", "changes the output of its last layer")):
        folder = causal(tmp_path / kind, kind)
        with pytest.raises(ConfigError, match=says):
            model(folder)


def test_weights_that_are_not_there_or_no_numbers_are_refused(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = causal(tmp_path / "model")
    with pytest.raises(ConfigError, match="set backend to torch"):
        model(folder, backend="onnx")
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "transformer.ln_f.bias": np.full(32, np.nan, np.float32)}, folder / "model.safetensors")
    with pytest.raises(ConfigError, match="not finite"):
        model(folder)
    save_file({key: value for key, value in weights.items() if "mlp" not in key}, folder / "model.safetensors")
    with pytest.raises(ConfigError, match="no weights for"):
        model(folder)


def test_int8_is_refused_and_not_passed_over() -> None:
    settings = EvaluatorSettings(models={"tiny": ModelSettings(source="/nowhere", int8_tolerance=0.1)})
    with pytest.raises(ConfigError, match=r'"tiny".int8_tolerance: no language model runs in int8'):
        load(ModelRef(Need.LM, "tiny"), settings)
