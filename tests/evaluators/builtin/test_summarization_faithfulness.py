"""SummaC against a plain reimplementation with weights drawn at random, and completeness by hand-worked angles."""

import math
import pickle
import zipfile
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from pydantic import ValidationError

from ragtide.evaluators.builtin.summarization_faithfulness import Params
from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.registry import load
from ragtide.evaluators.spec import Ask, Vectors
from ragtide.evaluators.text.summac import BINS, EDGES, Convolution, zero_shot
from ragtide.evaluators.text.summac_file import read_convolution
from tests.evaluators.builtin.answers import TOO_LONG, entails
from tests.evaluators.builtin.scoring import outcome, scored, trace

ID = "summarization_faithfulness"
SOURCE = "Mars is a planet. It is red and far away."
SUMMARY = "Mars is very red. Mars is very wet. Yes."
SAID: dict[Ask, float] = {
    ("Mars is a planet.", "Mars is very red."): 0.25,
    ("It is red and far away.", "Mars is very red."): 0.75,
    ("Mars is a planet.", "Mars is very wet."): 0.125,
}


class Angles:
    """Gives each text the unit vector of an angle, in degrees."""

    revision, dimension = "angles@1", 2

    def __init__(self, degrees: dict[str, float]) -> None:
        self._degrees = degrees

    def encode(self, texts: Sequence[str]) -> Vectors:
        radians = np.radians([self._degrees[text] for text in texts])
        return np.stack((np.cos(radians), np.sin(radians)), axis=1).astype(np.float32)

    def count_tokens(self, texts: Sequence[str]) -> int:
        return len(texts)


class Checkpoint(NamedTuple):
    """Weights of the published model's layers, drawn at random, and its forward pass step by step."""

    tensors: dict[str, npt.NDArray[np.float32]]

    def score(self, entailments: npt.NDArray[Any]) -> float:
        rows = []
        for row in entailments:
            histogram = [0] * BINS
            for value in row:
                histogram[min(bisect_right(EDGES, value), BINS) - 1] += 1
            rows.append(float(self.tensors["mlp.weight"][0].astype(float) @ histogram + self.tensors["mlp.bias"][0]))
        mean = sum(rows) / len(rows)
        logits = self.tensors["layer_final.weight"].astype(float) @ np.full(3, mean) + self.tensors["layer_final.bias"]
        return float(np.exp(logits[1]) / np.exp(logits).sum())


def checkpoint(seed: int) -> Checkpoint:
    draw = np.random.default_rng(seed)
    shapes = {"mlp.weight": (1, BINS), "mlp.bias": (1,), "layer_final.weight": (2, 3), "layer_final.bias": (2,)}
    return Checkpoint({name: draw.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()})


def saved(folder: Path, of: Checkpoint) -> Path:
    import torch

    path = folder / "convolution.bin"
    torch.save({name: torch.from_numpy(tensor) for name, tensor in of.tensors.items()}, path)
    return path


@pytest.mark.models
@pytest.mark.parametrize("seed", range(5))
def test_the_convolution_is_the_published_models_forward_pass(seed: int, tmp_path: Path) -> None:
    plain = checkpoint(seed)
    convolution = read_convolution(saved(tmp_path, plain))
    draw = np.random.default_rng(seed)
    for _ in range(50):
        entailments = draw.beta(0.3, 0.3, (draw.integers(1, 12), draw.integers(1, 40))).astype(np.float32)
        assert convolution.score(entailments) == pytest.approx(plain.score(entailments), abs=1e-9)
    on_edges = np.array([EDGES, EDGES[::-1]])
    assert convolution.score(on_edges) == pytest.approx(plain.score(on_edges), abs=1e-9)


def test_the_convolution_by_hand() -> None:
    # Bin 8 is [0.90, 0.91), the last one [0.995, 1]. Rows: 2 + 8 = 10 and 2 * 8 = 16, plus 1 each: mean 14.
    weights = tuple(2.0 if i == 8 else 8.0 if i == 22 else 0.0 for i in range(BINS))
    convolution = Convolution(weights=weights, bias=1.0, slope=-0.5, offset=6.0)
    entailments = np.array([[0.9, 0.5, 0.995], [1.0, 0.999, 0.2]])
    assert convolution.score(entailments) == pytest.approx(1 / (1 + math.exp(1)))
    extreme = Convolution(weights=weights, bias=1.0, slope=1e6, offset=0.0)
    assert extreme.score(entailments) == 1.0


def test_zero_shot_is_the_mean_of_the_largest_entailments() -> None:
    assert zero_shot(np.array([[0.25, 0.75], [0.125, 0.0]], np.float32)) == (0.75 + 0.125) / 2


def test_scores_and_evidence_of_a_summary() -> None:
    encoder = Angles({SOURCE: 0.0, "Mars is very red.": 30.0, "Mars is very wet.": 50.0})
    given = scored(ID, model=entails(SAID), encoder=encoder, question=SOURCE, answer=SUMMARY)
    assert given.metrics == {  # "Yes." is too short to count
        "completeness": pytest.approx(math.cos(math.radians(30)), abs=1e-6),
        "summac_zs": (0.75 + 0.125) / 2,
    }
    assert given.evidence == (
        Evidence("answer", 18, 35, kind="least_entailed", score=0.125),
        Evidence("question", 0, 17, kind="best_support", score=0.125),
    )
    lenient = scored(ID, {"threshold": 0.125}, model=entails(SAID), encoder=encoder, question=SOURCE, answer=SUMMARY)
    assert lenient.metrics["completeness"] == pytest.approx(math.cos(math.radians(40)), abs=1e-6)
    strict = scored(ID, {"threshold": 0.8}, model=entails(SAID), encoder=encoder, question=SOURCE, answer=SUMMARY)
    assert strict.metrics["completeness"] == 0.0


@pytest.mark.models
def test_the_convolution_of_a_file_is_a_metric(tmp_path: Path) -> None:
    plain = checkpoint(7)
    path = str(saved(tmp_path, plain))
    given = scored(ID, {"convolution": path}, model=entails(SAID), question=SOURCE, answer=SUMMARY)
    entailments = np.array([[0.25, 0.75], [0.125, 0.0]])
    assert given.metrics["summac_conv"] == pytest.approx(plain.score(entailments), abs=1e-9)
    numbers = Params.model_validate({"convolution": path}).model_dump()
    assert scored(ID, numbers, model=entails(SAID), question=SOURCE, answer=SUMMARY) == given


class Harmful:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("harmed"),)


def test_a_file_that_unpacks_to_more_than_it_should_is_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"mlp.weight": "x" * 2_000_000}))
    with pytest.raises(ValueError, match="is not SummaC-Conv's weights") as told:
        read_convolution(tmp_path / "bomb.bin")
    assert str(told.value.__cause__) == "larger than 28 numbers are"


@pytest.mark.models
@pytest.mark.parametrize("wrong", ["harmful", "other bins", "transposed", "another type"])
def test_a_checkpoint_that_is_another_is_refused(wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    tensors = {name: torch.from_numpy(tensor) for name, tensor in checkpoint(1).tensors.items()}
    given: dict[str, dict[str, Any]] = {
        "harmful": {"mlp.weight": Harmful()},
        "other bins": {"mlp.weight": torch.zeros(1, 50)},
        "transposed": {"layer_final.weight": torch.zeros(3, 2).T},
        "another type": {"mlp.bias": torch.zeros(1, dtype=torch.int64)},
    }
    torch.save({**tensors, **given[wrong]}, "convolution.bin")
    with pytest.raises(ValueError, match="is not SummaC-Conv's weights with 23 bins"):
        read_convolution(Path("convolution.bin"))
    assert not Path("harmed").exists()


def test_a_file_that_cannot_be_read_is_told_with_the_parameter(tmp_path: Path) -> None:
    broken = tmp_path / "broken.bin"
    broken.write_bytes(b"no checkpoint")
    for path in (tmp_path / "absent.bin", broken):
        with pytest.raises(ConfigError, match=r"evaluators\.params\.summarization_faithfulness\.convolution.*23 bins"):
            outcome(ID, {"convolution": str(path)}, question=SOURCE, answer=SUMMARY)


def test_pruned_pairs_and_the_convolution_exclude_each_other() -> None:
    convolution = Convolution(weights=(0.0,) * BINS, bias=0.0, slope=0.0, offset=0.0)
    with pytest.raises(ValidationError, match="set top_k to 0"):
        Params.model_validate({"convolution": convolution, "top_k": 4})
    pruned = scored(ID, {"top_k": 1}, model=entails(SAID), question=SOURCE, answer=SUMMARY)
    assert "summac_conv" not in pruned.metrics


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        (SOURCE, "Yes. It is.", "too_short"),
        (SOURCE, " ", "too_short"),
        ("Why? So. 123", SUMMARY, "source_too_short"),
        (SOURCE * 100, SUMMARY * 100, "too_long"),
    ],
)
def test_what_cannot_be_asked_is_not_a_number(question: str, answer: str, reason: str) -> None:
    assert outcome(ID, question=question, answer=answer) == NotApplicable(reason)


def test_a_sentence_that_the_model_cannot_take_whole_is_too_long() -> None:
    said = entails({("Mars is a planet.", "Mars is very wet."): TOO_LONG})
    assert outcome(ID, model=said, question=SOURCE, answer=SUMMARY) == NotApplicable("too_long")


@pytest.mark.models
def test_it_keeps_the_contract_with_a_convolution_and_with_pruned_pairs(tmp_path: Path) -> None:
    path = str(saved(tmp_path, checkpoint(1)))
    for params in ({}, {"convolution": path}, {"top_k": 2}):
        check_evaluator(load()[ID], [trace(question=SOURCE, answer=SUMMARY)], Params.model_validate(params))
