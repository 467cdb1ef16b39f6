"""Classifiers of BERT's kind give without torch what transformers gives with it; others say that they need it."""

import json
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.models import Model, load, revision_of, what_is_missing
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import Ask, ModelRef, Need
from tests.evaluators.models.tiny import LABELS, WORDS, classifier

pytestmark = [pytest.mark.models, pytest.mark.onnx]

KINDS = ("bert", "distilbert", "roberta", "xlm-roberta")
REF = ModelRef(Need.NLI, "tiny", LABELS)


@cache
def folder(kind: str) -> Path:
    places: dict[str, Any] = (
        {"max_position_embeddings": 42} if kind == "xlm-roberta" else {}
    )  # its first two are of no token
    return classifier(Path(mkdtemp()) / kind, kind, **places)


def chosen(kind: str, **own: Any) -> EvaluatorSettings:
    return EvaluatorSettings(models={"tiny": ModelSettings(source=str(folder(kind)), **own)})


@cache
def made(kind: str, backend: str) -> Model:
    return load(REF, chosen(kind, backend=backend))


text = st.sampled_from([*WORDS.split(), "[SEP] <pad>", "[PAD]", "</s>", ""]).flatmap(
    lambda word: st.integers(0, 12).map(lambda times: " ".join([word, "Paris", "rude?"] * times))
) | st.text(max_size=30)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(asks=st.lists(st.tuples(text) | st.tuples(text, text), min_size=1, max_size=5))
def test_it_gives_what_transformers_gives(kind: str, asks: list[Ask]) -> None:
    onnx, torch = made(kind, "onnx"), made(kind, "torch")
    assert onnx.revision == torch.revision
    np.testing.assert_allclose(onnx.answer(asks), torch.answer(asks), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_its_answers_differ_from_text_to_text_and_not_with_their_neighbours(kind: str) -> None:
    asks: list[Ask] = [(WORDS, "Paris"), ("Paris", "Is it rude?"), ("The router has a button.",), ("", "")]
    model = made(kind, "onnx")
    together = model.answer(asks)
    assert together.std(axis=0).min() > 0.005
    np.testing.assert_allclose(np.concatenate([model.answer([ask]) for ask in asks]), together, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_of_half_precision_are_read(tmp_path: Path, dtype: str) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    own = classifier(tmp_path / "half", "bert")
    weights = load_file(own / "model.safetensors")
    save_file(
        {name: one.to(getattr(torch, dtype)) for name, one in weights.items()},
        own / "model.safetensors",
        {"format": "pt"},
    )
    given = [
        load(REF, EvaluatorSettings(models={"tiny": ModelSettings(source=str(own), backend=name, dtype="float32")}))
        for name in ("onnx", "torch")
    ]
    answers = [model.answer([(WORDS, "Paris")]) for model in given]
    np.testing.assert_allclose(answers[0], answers[1], rtol=0, atol=1e-4)
    assert np.abs(answers[0] - made("bert", "onnx").answer([(WORDS, "Paris")])).max() > 1e-6, "rounding must show"


@pytest.mark.parametrize("backend", ["onnx", "torch"])
def test_what_is_no_number_is_an_error_and_not_a_text_that_is_too_long(tmp_path: Path, backend: str) -> None:
    from safetensors.numpy import load_file, save_file
    from tokenizers import Tokenizer

    own = classifier(tmp_path / "own", "bert")
    weights = load_file(own / "model.safetensors")
    words = weights["bert.embeddings.word_embeddings.weight"]
    [bad, *_] = Tokenizer.from_file(str(own / "tokenizer.json")).encode("漢", add_special_tokens=False).ids
    words[bad] = np.nan
    save_file(weights, own / "model.safetensors", {"format": "pt"})
    own_model = ModelSettings.model_validate({"source": str(own), "backend": backend})
    settings = EvaluatorSettings(models={"tiny": own_model})
    model = load(REF, settings)
    with pytest.raises(FloatingPointError, match="not finite"):
        model.answer([("a",), ("漢",)])
    assert np.isfinite(model.answer([("a",)])).all()
    save_file({**weights, "classifier.bias": np.full(3, np.nan, np.float32)}, own / "model.safetensors")
    with pytest.raises(ConfigError, match="the weights of the model tiny give numbers that are not finite"):
        load(REF, settings)


def test_no_torch_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from ragtide.evaluators.models import load; from ragtide.evaluators.settings import *\n"
        "from ragtide.evaluators.spec import *\n"
        f"own = EvaluatorSettings(models={{'tiny': ModelSettings(source={str(folder('bert'))!r}, backend='onnx')}})\n"
        f"load(ModelRef(Need.NLI, 'tiny', {LABELS!r}), own).answer([('a', 'b')])\n"
        "print(sorted({'torch', 'transformers', 'scipy'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert output.stdout.strip() == "[]"


class TestWithoutTorch:
    @pytest.fixture(autouse=True)
    def _away(self, monkeypatch: pytest.MonkeyPatch) -> None:
        away = ("torch", "transformers")
        monkeypatch.setattr(
            "ragtide.evaluators.runtime.packages.find_spec", lambda name: None if name in away else find_spec(name)
        )

    @pytest.mark.parametrize("kind", KINDS)
    def test_models_of_berts_kind_run(self, kind: str) -> None:
        assert what_is_missing(REF, chosen(kind)) is None
        assert load(REF, chosen(kind)).answer([("a", "b")]).shape == (1, 3)

    def test_others_say_what_to_install_and_why(self, tmp_path: Path) -> None:
        other = classifier(tmp_path / "other", "albert")
        own = EvaluatorSettings(models={"tiny": ModelSettings(source=str(other))})
        with pytest.raises(Unavailable, match=r"torch and transformers .*ragtide\[models\]'.*model_type is 'albert'"):
            load(REF, own)

    def test_language_models_need_it(self) -> None:
        missing = what_is_missing(ModelRef(Need.LM, "tiny"), chosen("bert"))
        assert missing == "torch and transformers for the model tiny not installed: pip install 'ragtide[models]'"


@pytest.mark.parametrize(
    ("file", "change", "own", "says"),
    [
        ("config.json", {"model_type": "deberta-v2"}, {}, "its model_type is 'deberta-v2'"),
        ("config.json", {"hidden_act": "relu"}, {}, "its hidden_act is 'relu'"),
        ("config.json", {"is_decoder": True}, {}, "its is_decoder is True"),
        ("config.json", {"auto_map": {}}, {"remote_code": True}, "its code may run"),
        ("tokenizer_config.json", {"tokenizer_class": "ElectraTokenizer"}, {}, "its tokenizer is a ElectraTokenizer"),
        ("config.json", {}, {"dtype": "bfloat16"}, "it is set to run in bfloat16"),
    ],
)
def test_what_the_graph_cannot_reproduce_is_refused(
    tmp_path: Path, file: str, change: dict[str, Any], own: dict[str, Any], says: str
) -> None:
    copy = classifier(tmp_path / "other", "bert")
    (copy / file).write_text(json.dumps({**json.loads((copy / file).read_text()), **change}))
    wrong = EvaluatorSettings(models={"tiny": ModelSettings(source=str(copy), backend="onnx", **own)})
    with pytest.raises(ConfigError, match=rf"cannot run on the onnx backend: {says}.*backend unset"):
        load(REF, wrong)


def test_a_classifier_without_a_trained_head_is_refused(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    own = classifier(tmp_path / "headless", "bert")
    weights = load_file(own / "model.safetensors")
    save_file(
        {name: one for name, one in weights.items() if not name.startswith("classifier")}, own / "model.safetensors"
    )
    with pytest.raises(ConfigError, match=r"no float tensor 'classifier\.weight'"):
        load(REF, EvaluatorSettings(models={"tiny": ModelSettings(source=str(own), backend="onnx")}))


def test_half_a_tokenizers_configuration_is_refused(tmp_path: Path) -> None:
    own = classifier(tmp_path / "half", "bert")
    (own / "tokenizer_config.json").write_text('{"model_max_length": ')
    with pytest.raises(ConfigError, match=r"tokenizer_config\.json is not JSON; fetch the model again"):
        load(REF, EvaluatorSettings(models={"tiny": ModelSettings(source=str(own))}))


def test_auto_runs_what_torch_alone_can() -> None:
    model = load(REF, chosen("albert"))
    assert model.revision == revision_of(REF, chosen("albert"))
    np.testing.assert_allclose(
        model.answer([("a", "b")]), made("albert", "torch").answer([("a", "b")]), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_encoders_of_each_family_have_the_vectors_of_sentence_transformers(kind: str) -> None:
    onnx, torch = (
        load_encoder(EncoderSettings.model_validate({"model": str(folder(kind)), "backend": backend}))
        for backend in ("onnx", "sentence-transformers")
    )
    texts = [WORDS, "Paris", "", "The router has a button. " * 9, "漢字 <pad> [PAD]"]
    vectors = onnx.encode(texts)
    np.testing.assert_allclose(vectors, torch.encode(texts), rtol=0, atol=1e-4)
    assert np.abs(vectors @ vectors.T - 1).max() > 0.01, "the texts must differ"
