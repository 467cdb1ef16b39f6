"""What evaluators make of a real model is what transformers give in a plain loop: tiny models, random weights."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ragtide.evaluators.builtin.toxicity import LABELS
from ragtide.evaluators.models import Model, load
from ragtide.evaluators.outcome import NotApplicable, Scored
from ragtide.evaluators.settings import EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import ModelRef
from tests.evaluators.builtin.scoring import chunks, outcomes, trace
from tests.evaluators.models.tiny import classifier

pytestmark = [
    pytest.mark.models,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning"),  # DeBERTa's own code
]

TOLERANCE = 1e-4
DETOXIFY = ("toxic", "severe_toxic", "obscene", "threat", "insult", "identity_hate")
SHORT = ("Is the router kind?", "Nobody knows why!", "Paris has a button.")  # two of them fit the model at once
ROOM = 38  # of 40 tokens, two are the model's own
TEXTS = ("Is the router kind?", "Nobody knows why! The prices rose.", "Paris has a button; it is rude.")
CONTEXTS = chunks("The router has a button. Paris is kind.", "It is rude.")
SENTENCES = ("The router has a button.", "Paris is kind.", "It is rude.")


class Plain:
    """A model and its tokenizer as transformers load them, asked one text or pair at a time."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def logits(self, *texts: str) -> npt.NDArray[np.float64]:
        return self._forward(self.tokenizer(*texts, return_tensors="pt"))

    def logits_between_its_own_tokens(self, pieces: Sequence[int]) -> npt.NDArray[np.float64]:
        import torch

        ids = torch.tensor([[self.tokenizer.cls_token_id, *pieces, self.tokenizer.sep_token_id]])
        return self._forward({"input_ids": ids, "attention_mask": torch.ones_like(ids)})

    def _forward(self, encoded: Any) -> npt.NDArray[np.float64]:
        import torch

        with torch.no_grad():
            given: npt.NDArray[np.float64] = self._model(**encoded).logits[0].double().numpy()
        return given


def sigmoid(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return 1 / (1 + np.exp(-logits))


def softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    given: npt.NDArray[np.float64] = np.exp(logits) / np.exp(logits).sum()
    return given


def from_folder(folder: Path) -> Callable[[ModelRef], Model]:
    """Loads whatever model is asked for from the folder, as settings would have it."""
    return lambda ref: load(ref, EvaluatorSettings(models={ref.name: ModelSettings(source=str(folder))}))


def metrics(id: str, folder: Path, fields: Sequence[dict[str, Any]], **params: Any) -> list[dict[str, float]]:
    given = outcomes(id, [trace(**each) for each in fields], params, model=from_folder(folder))
    scored = [one for one in given if isinstance(one, Scored)]
    assert len(scored) == len(fields), given
    return [dict(one.metrics) for one in scored]


def test_toxicity(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "roberta", DETOXIFY)
    plain = Plain(folder)
    given = metrics("toxicity", folder, [{"answer": text} for text in TEXTS])
    for text, found in zip(TEXTS, given, strict=True):
        expected = dict(zip(LABELS, sigmoid(plain.logits(text)), strict=True))
        assert found == pytest.approx(expected, abs=TOLERANCE)


def test_toxicity_of_a_long_text_is_that_of_its_windows(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "bert", DETOXIFY)
    plain, text = Plain(folder), " ".join(TEXTS * 4)
    pieces = plain.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert len(pieces) > 2 * ROOM
    count = -(-len(pieces) // ROOM)
    cut = [pieces[len(pieces) * i // count : len(pieces) * (i + 1) // count] for i in range(count)]
    expected = np.max([sigmoid(plain.logits_between_its_own_tokens(window)) for window in cut], axis=0)
    [found] = metrics("toxicity", folder, [{"answer": text}])
    assert found == pytest.approx(dict(zip(LABELS, expected, strict=True)), abs=TOLERANCE)


def test_fairness_bias(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "distilbert", ("Non-biased", "Biased"))
    plain = Plain(folder)
    given = metrics("fairness_bias", folder, [{"answer": text} for text in TEXTS])
    expected = [{"fairness_bias": pytest.approx(softmax(plain.logits(text))[1], abs=TOLERANCE)} for text in TEXTS]
    assert given == expected


def test_a_cross_encoder_gives_what_sentence_transformers_gives(tmp_path: Path) -> None:
    from sentence_transformers import CrossEncoder

    folder = classifier(tmp_path / "similarity", "roberta", ("similarity",))
    fields = [{"answer": text, "expected": SENTENCES} for text in TEXTS]
    given = metrics("answer_semantic_similarity", folder, fields, cross_encoder="similarity")
    theirs = CrossEncoder(str(folder)).predict([(text, sentence) for text in TEXTS for sentence in SENTENCES])
    best = theirs.reshape(len(TEXTS), -1).max(1)
    assert [one["answer_similarity"] for one in given] == pytest.approx(best, abs=TOLERANCE)
    assert np.ptp(best) > 0.01, "answers that are all alike would show nothing"


def test_hallucination(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "deberta-v2", ("consistent",))
    plain = Plain(folder)
    contexts = chunks("A button.", "Is it kind?")
    given = metrics("hallucination", folder, [{"answer": text, "contexts": contexts} for text in SHORT])
    expected = [sigmoid(plain.logits("A button.\nIs it kind?", text))[0] for text in SHORT]
    assert [found["hallucination"] for found in given] == pytest.approx(expected, abs=TOLERANCE)
    long = trace(answer=" ".join(TEXTS), contexts=contexts)
    assert outcomes("hallucination", [long], model=from_folder(folder)) == [NotApplicable("too_long")]


@pytest.mark.parametrize("top_k", [0, 8])
def test_faithfulness(tmp_path: Path, top_k: int) -> None:
    folder = classifier(tmp_path, "deberta-v2", ("contradiction", "entailment", "neutral"))
    plain = Plain(folder)
    best = [max(softmax(plain.logits(context, answer))[1] for context in SENTENCES) for answer in SHORT]
    threshold = sorted(best)[1] - 1e-3  # two of three reach it
    fields = {"answer": " ".join(SHORT), "contexts": CONTEXTS}
    settings = {"top_k": top_k, "threshold": threshold, "attributions": 1}
    model = from_folder(folder)
    [given] = outcomes("faithfulness_nli", [trace(**fields)], settings, model=model)
    assert isinstance(given, Scored)
    assert given.metrics == {"faithfulness": pytest.approx(2 / 3)}
    assert [place.score for place in given.evidence[::2]] == pytest.approx(best, abs=TOLERANCE)


def test_summac(tmp_path: Path) -> None:
    folder = classifier(tmp_path, "albert", ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"))
    plain = Plain(folder)
    summary = SHORT[:2]
    best = [max(softmax(plain.logits(source, sentence))[0] for source in SENTENCES) for sentence in summary]
    [found] = metrics(
        "summarization_faithfulness", folder, [{"question": " ".join(SENTENCES), "answer": " ".join(summary)}]
    )
    assert found["summac_zs"] == pytest.approx(sum(best) / 2, abs=TOLERANCE)
