"""Classifiers on torch give what transformers gives for one text after another, whatever else is asked with it."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.models import Model, load
from ragtide.evaluators.settings import EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import Ask, ModelRef, Need, Vectors
from tests.evaluators.models.tiny import LABELS, classifier

pytestmark = pytest.mark.models

KINDS = ("bert", "roberta", "distilbert", "deberta-v2", "albert")
SENTENCE = "The router has a button. "
ASKS: tuple[Ask, ...] = (
    ("Paris is big.", "It has people."),
    ("a", ""),
    ("Prices rose by 3.5 %",),
    ("[SEP] [PAD] </s> <pad>", "lone surrogate"),
    ("漢字 naïve café", "rude or neither?"),
    ("a", "a"),
    ("a a",),
    ("",),
)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: classifier(tmp_path_factory.mktemp("tiny") / kind, kind) for kind in KINDS}


@cache
def made(folder: Path, **chosen: Any) -> Model:
    settings = EvaluatorSettings(models={str(folder): ModelSettings(backend="torch", **chosen)})
    return load(ModelRef(Need.NLI, str(folder), LABELS), settings)


@cache
def theirs(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    return AutoTokenizer.from_pretrained(folder), AutoModelForSequenceClassification.from_pretrained(folder).eval()


def plain(folder: Path, ask: Ask) -> Vectors:
    """One text or pair, alone, by transformers itself."""
    import torch

    tokenizer, model = theirs(folder)
    pairs = [[text] for text in ask]  # lists: an empty second text by itself is taken for none
    with torch.inference_mode():
        logits = model(**tokenizer(*pairs, return_tensors="pt")).logits
    return np.asarray(logits.softmax(-1)[0].numpy(), np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_it_gives_what_transformers_gives(folders: dict[str, Path], kind: str) -> None:
    given = made(folders[kind]).answer(ASKS)
    expected = np.array([plain(folders[kind], ask) for ask in ASKS])
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-4)
    assert given.dtype == np.float32
    assert np.ptp(expected, axis=0).min() > 0.02, "answers that are all alike would show nothing"


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_is_near(folders: dict[str, Path], kind: str) -> None:
    model = made(folders[kind], dtype="bfloat16")
    assert model.revision == made(folders[kind]).revision + "+bf16"
    given = model.answer(ASKS)
    np.testing.assert_allclose(given, [plain(folders[kind], ask) for ask in ASKS], rtol=0, atol=2e-2)


texts = st.text(st.sampled_from("abcPr. 漢"), max_size=20) | st.sampled_from([text for ask in ASKS for text in ask])
some_asks = st.lists(st.tuples(texts) | st.tuples(texts, texts), max_size=8)


@settings(max_examples=40, deadline=None)
@given(asks=some_asks, kind=st.sampled_from(KINDS), tokens=st.sampled_from([1, 60, 1000]))
def test_an_answer_does_not_depend_on_what_else_is_asked(
    folders: dict[str, Path], asks: list[Ask], kind: str, tokens: int
) -> None:
    model = made(folders[kind], batch_tokens=tokens)
    alone = [made(folders[kind]).answer([ask])[0] for ask in asks]
    assert model.answer(asks).shape == (len(asks), 3)
    np.testing.assert_allclose(model.answer(asks), np.reshape(alone, (len(asks), 3)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_is_read_in_windows_and_the_largest_probability_counts(folders: dict[str, Path], kind: str) -> None:
    """By hand: the tokens cut into as few even parts as fit, each read by transformers, the largest of each label."""
    import torch

    tokenizer, model = theirs(folders[kind])
    first, second = SENTENCE * 12, "Paris"
    tokens, other = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (first, second))
    specials = len(tokenizer([first], [second])["input_ids"][0]) - len(tokens) - len(other)
    room = 40 - specials - len(other)
    count = -(-len(tokens) // room)
    assert count > 1
    cut = [len(tokens) * i // count for i in range(count + 1)]
    framed = tokenizer(["a"], [second])
    at = framed["input_ids"][0].index(tokenizer("a", add_special_tokens=False)["input_ids"][0])
    length = len(tokenizer("a", add_special_tokens=False)["input_ids"])
    rows = []
    for start, end in pairwise(cut):
        inputs = {}
        for name, [values] in framed.items():
            inside = tokens[start:end] if name == "input_ids" else [values[at]] * (end - start)
            inputs[name] = torch.tensor([[*values[:at], *inside, *values[at + length :]]])
        with torch.inference_mode():
            rows.append(model(**inputs).logits.softmax(-1)[0].numpy())
    given = made(folders[kind]).answer([(first, second), ("x",)])
    np.testing.assert_allclose(given[0], np.max(rows, axis=0), rtol=0, atol=1e-4)


def test_a_second_text_is_never_cut(folders: dict[str, Path]) -> None:
    model, [short, long] = made(folders["bert"]), [SENTENCE * 12, SENTENCE * 60]
    rows = model.answer([(short, long), (long,), (short, "Paris"), ("a", short), (long, SENTENCE)])
    assert np.isnan(rows).all(axis=1).tolist() == [True, False, False, True, False]
    assert np.isnan(rows).any(axis=1).tolist() == [True, False, False, True, False]
    fits = "a " * 36  # with one token before it and three special ones: the whole window
    assert np.isnan(model.answer([("a", fits), ("a a", fits)])).any(axis=1).tolist() == [False, True]


def test_threads_may_share_it(folders: dict[str, Path]) -> None:
    model = made(folders["deberta-v2"])
    whole = model.answer(ASKS)
    with ThreadPoolExecutor(3) as pool:
        for rows in pool.map(lambda _: model.answer(ASKS), range(9)):
            np.testing.assert_allclose(rows, whole, rtol=0, atol=1e-6)


def test_hostile_texts_are_read(folders: dict[str, Path]) -> None:
    texts = ["\x00", "\ud800", "x" * 20_000, " " * 20_000, "\u202e" * 50, "\U0010ffff"]
    for kind in KINDS:
        rows = made(folders[kind]).answer([(text,) for text in texts] + [(text, "a") for text in texts])
        assert np.isfinite(rows).all()
    assert made(folders["bert"]).answer([]).shape == (0, 3)


def test_one_score_and_labels_of_their_own(tmp_path: Path) -> None:
    score = classifier(tmp_path / "score", "bert", ("LABEL_0",))
    many = classifier(tmp_path / "many", "roberta", ("toxic", "insult"), problem_type="multi_label_classification")
    import torch

    def logits(folder: Path) -> Any:
        tokenizer, model = theirs(folder)
        with torch.inference_mode():
            return model(**tokenizer("Is it rude?", return_tensors="pt")).logits[0]

    torch_alone = {str(folder): ModelSettings(backend="torch") for folder in (score, many)}
    chosen = EvaluatorSettings(models=torch_alone)
    [[given]] = load(ModelRef(Need.CLASSIFIER, str(score)), chosen).answer([("Is it rude?",)])
    assert given == pytest.approx(float(torch.sigmoid(logits(score))), abs=1e-4)
    ref = ModelRef(Need.CLASSIFIER, str(many), ("insult", "toxicity"))
    [row] = load(ref, chosen).answer([("Is it rude?",)])
    assert row == pytest.approx(torch.sigmoid(logits(many)).numpy()[::-1], abs=1e-4)


class TestBadModels:
    @pytest.fixture
    def folder(self, folders: dict[str, Path], tmp_path: Path) -> Path:
        return shutil.copytree(folders["bert"], tmp_path / "bert")

    def refused(self, folder: Path, says: str, **chosen: Any) -> None:
        settings = EvaluatorSettings(models={str(folder): ModelSettings(backend="torch", **chosen)})
        with pytest.raises(ConfigError, match=says):
            load(ModelRef(Need.NLI, str(folder), LABELS), settings)

    def changed(self, folder: Path, name: str, **changes: object) -> None:
        held = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps({**held, **changes}))

    def test_pickled_weights(self, folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
        self.refused(folder, "no model.safetensors, only pytorch_model.bin")

    def test_labels_without_names(self, folder: Path) -> None:
        self.changed(folder, "config.json", id2label={str(n): f"LABEL_{n}" for n in range(3)})
        self.refused(folder, "no label entailment and neutral and contradiction; it has LABEL_0, LABEL_1, LABEL_2")

    def test_weights_without_a_classifier(self, folder: Path) -> None:
        from safetensors.numpy import load_file, save_file

        weights = load_file(folder / "model.safetensors")
        save_file({k: v for k, v in weights.items() if "classifier" not in k}, folder / "model.safetensors")
        self.refused(folder, "it has no weights for classifier.bias, classifier.weight")

    def test_weights_broken_off(self, folder: Path) -> None:
        weights = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
        self.refused(folder, "cannot load the model")

    def test_code_that_comes_with_it(self, folder: Path) -> None:
        self.changed(
            folder, "config.json", auto_map={"AutoModelForSequenceClassification": "own.Own"}, model_type="own"
        )
        (folder / "own.py").write_text("raise SystemExit('ran')")
        self.refused(folder, "cannot load the model")

    def test_no_tokenizer(self, folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        self.refused(folder, "cannot load the model|no fast tokenizer")

    def test_a_device_that_is_not_there(self, folder: Path) -> None:
        self.refused(folder, "there is no torch device 'cuda:99' here; there is cpu, and", device="cuda:99")
        self.refused(folder, "there is no torch device 'toaster' here", device="toaster")


def test_detoxifys_models_give_what_detoxify_gives(tmp_path: Path) -> None:
    """Its own checkpoint of a model, and the same model as the hub has it: other names of labels, in another order."""
    import torch
    from detoxify import Detoxify

    own = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
    asked = ("toxicity", "severe_toxicity", "identity_attack", "insult", "threat", "obscene")
    folder = classifier(tmp_path / "toxic-bert", "bert", own)
    _, model = theirs(folder)
    arch = {
        "model_type": str(folder),
        "model_name": "BertForSequenceClassification",
        "tokenizer_name": "AutoTokenizer",
        "num_classes": 6,
    }
    config = {"dataset": {"args": {"classes": own}}, "arch": {"args": arch}}
    torch.save({"config": config, "state_dict": model.state_dict()}, tmp_path / "toxic.ckpt")
    texts = ["Is it rude?", "Paris is big.", "x"]
    expected = Detoxify(checkpoint=tmp_path / "toxic.ckpt").predict(texts)
    chosen = EvaluatorSettings(models={"original": ModelSettings(source=str(folder), backend="torch")})
    given = load(ModelRef(Need.CLASSIFIER, "original", asked), chosen).answer([(text,) for text in texts])
    np.testing.assert_allclose(given, np.transpose([expected[label] for label in asked]), rtol=0, atol=1e-4)
