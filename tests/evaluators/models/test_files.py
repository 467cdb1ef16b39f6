"""Where models are looked for, what is refused, and which model it is then said to be."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from ragtide.evaluators.errors import ConfigError, Unavailable
from ragtide.evaluators.models import load, revision_of, what_is_missing
from ragtide.evaluators.models.convert import convert_weights
from ragtide.evaluators.models.files import find, source_of
from ragtide.evaluators.models.known_models import KNOWN_MODELS, NLI
from ragtide.evaluators.models.labels import Labels, labels_of
from ragtide.evaluators.settings import EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import ModelRef, Need

pytestmark = pytest.mark.models

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LABELS = ("entailment", "neutral", "contradiction")


def folder_of(path: Path, config: object = None, weights: tuple[str, ...] = ("model.safetensors",)) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps({"id2label": {"0": "a"}} if config is None else config))
    for name in weights:
        save_file({"w": np.ones(3, np.float32)}, path / name)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub's client."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def snapshot(cache: Path, name: str, branch: str | None = "main", **made: tuple[str, ...]) -> Path:
    stored = cache / f"models--{name.replace('/', '--')}"
    if branch:
        (stored / "refs").mkdir(parents=True)
        (stored / "refs" / branch).write_text(COMMIT)
    return folder_of(stored / "snapshots" / COMMIT, **made)


def test_a_folder_is_named_by_its_weights(tmp_path: Path) -> None:
    one = folder_of(tmp_path / "mine")
    ref = ModelRef(Need.CLASSIFIER, str(one), ("a",))
    before = revision_of(ref, EvaluatorSettings())
    assert before == "mine@" + hashlib.sha256((one / "model.safetensors").read_bytes()).hexdigest()[:8]
    given = EvaluatorSettings(models={"tone": ModelSettings(source=str(one))})
    assert find("tone", given).revision == before
    exact = EvaluatorSettings(models={str(one): ModelSettings(dtype="bfloat16")})
    assert revision_of(ref, exact) == before + "+bf16"
    save_file({"w": np.zeros(4, np.float32)}, one / "model.safetensors")
    assert revision_of(ref, EvaluatorSettings()) != before, "other weights are another model"


def test_of_the_hub_the_commit_names_it_and_only_a_whole_snapshot_counts(cache: Path) -> None:
    ref, settings = ModelRef(Need.NLI, "some/model", LABELS), EvaluatorSettings()
    missing = "the model some/model is not here: ragtide models fetch some/model"
    assert what_is_missing(ref, settings) == missing
    with pytest.raises(Unavailable, match="ragtide models fetch some/model"):
        load(ref, settings)
    there = snapshot(cache, "some/model")
    assert what_is_missing(ref, settings) is None
    assert revision_of(ref, settings) == "model@01234567"
    (there / "model.safetensors").unlink()
    assert what_is_missing(ref, settings) == missing
    index = {"weight_map": {"w": "model-1-of-2.safetensors", "v": "model-2-of-2.safetensors"}}
    (there / "model.safetensors.index.json").write_text(json.dumps(index))
    save_file({"w": np.ones(3, np.float32)}, there / "model-1-of-2.safetensors")
    assert what_is_missing(ref, settings) == missing, "one of two files"
    save_file({"v": np.ones(3, np.float32)}, there / "model-2-of-2.safetensors")
    assert what_is_missing(ref, settings) is None


def test_a_known_name_and_a_revision_of_ones_own(cache: Path) -> None:
    hallucination = "vectara/hallucination_evaluation_model"
    assert source_of(hallucination, EvaluatorSettings()).revision == KNOWN_MODELS[hallucination].revision
    pinned = EvaluatorSettings(models={hallucination: ModelSettings(revision="main")})
    assert source_of(hallucination, pinned).revision == "main"
    toxicity = source_of("original", EvaluatorSettings())
    assert (toxicity.place, toxicity.multi_label) == ("unitary/toxic-bert", True)
    here = source_of("original", EvaluatorSettings(models={"original": ModelSettings(source="/models/toxic")}))
    assert (here.place, here.multi_label) == ("/models/toxic", True)
    assert source_of(NLI, EvaluatorSettings()).place == NLI
    snapshot(cache, "unitary/toxic-bert", "v2")
    chosen = EvaluatorSettings(models={"original": ModelSettings(revision="v2")})
    assert find("original", chosen).revision == "toxic-bert@01234567"


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "only pytorch_model.bin"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "tf_model.h5"), "only tf_model.h5.*TensorFlow"),
        (lambda folder: shutil.rmtree(folder), "there is no folder"),
    ],
)
def test_a_folder_that_no_model_can_be_read_from(tmp_path: Path, break_it: object, says: str) -> None:
    one = folder_of(tmp_path / "mine")
    assert callable(break_it)
    break_it(one)
    settings = EvaluatorSettings(models={"tone": ModelSettings(source=str(one))})
    with pytest.raises(ConfigError, match=rf'evaluators\.models\."tone"\.source: .*{says}'):
        what_is_missing(ModelRef(Need.CLASSIFIER, "tone"), settings)


def test_labels_are_found_by_name(tmp_path: Path) -> None:
    def of(labels: tuple[str, ...], own: tuple[str, ...], **config: object) -> Labels:
        path = folder_of(tmp_path / str(len(list(tmp_path.iterdir()))), {"id2label": dict(enumerate(own)), **config})
        return labels_of(ModelRef(Need.CLASSIFIER, str(path), labels), find(str(path), EvaluatorSettings()))

    nli = of(LABELS, ("CONTRADICTION", "entailment", "Neutral"))
    assert (nli.places, nli.outputs, nli.sigmoid) == ((1, 2, 0), 3, False)
    fever = of(LABELS, ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"))
    assert fever.places == (0, 2, 1)
    toxic = of(
        ("toxicity", "identity_attack"), ("toxic", "x", "identity_hate"), problem_type="multi_label_classification"
    )
    assert (toxic.places, toxic.sigmoid) == ((0, 2), True)
    own = of(("toxicity",), ("toxic", "toxicity"))
    assert own.places == (1,), "its own name goes before what it is also called"
    score = of((), ("LABEL_0",))
    assert (score.places, score.sigmoid) == ((0,), True)
    with pytest.raises(ConfigError, match="has no label Biased; it has LABEL_0, LABEL_1"):
        of(("Biased",), ("LABEL_0", "LABEL_1"))
    with pytest.raises(ConfigError, match=r"gives 2 scores \(a, b\); one is asked for"):
        of((), ("a", "b"))


def test_probabilities_are_those_of_the_textbook() -> None:
    logits = np.array([[0, np.log(2), np.log(5)], [1e4, -1e4, 0], [np.nan, 0, 0]], np.float32)
    softmax = Labels((2, 0), 3, sigmoid=False).probabilities(logits)
    assert softmax[:2] == pytest.approx(np.array([[5 / 8, 1 / 8], [0, 1]]))
    assert np.isnan(softmax[2]).all()
    assert Labels((1,), 3, sigmoid=True).probabilities(logits)[:2] == pytest.approx(np.array([[2 / 3], [0]]))


class Runs:
    """What a pickle can do as it is read."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("ran"),)


def test_a_pickle_is_converted_where_it_holds_tensors_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from safetensors.torch import load_file

    monkeypatch.chdir(tmp_path)
    shared = torch.arange(6.0).reshape(2, 3)
    torch.save({"w": shared, "tied": shared, "turned": shared.T}, tmp_path / "pytorch_model.bin")
    held = load_file(convert_weights(tmp_path))
    assert torch.equal(held["tied"], shared)
    assert torch.equal(held["turned"], shared.T)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"w": shared, "more": Runs()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="holds more than tensors"):
        convert_weights(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pytorch_model.bin"], "nothing ran, nothing is left"
