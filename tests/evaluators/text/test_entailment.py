"""Which pairs an NLI model is asked: all, or those nearest in meaning, each once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.resources import Batch, Resources
from ragtide.evaluators.spec import Vectors
from ragtide.evaluators.text.entailment import Pairs, nli

NLI = nli("any")


class Degrees:
    """Gives a text that is a number the unit vector of that angle: cosines of small differences are large."""

    revision, dimension = "degrees@1", 2

    def encode(self, texts: Any) -> Vectors:
        radians = np.radians([float(text) for text in texts])
        return np.stack((np.cos(radians), np.sin(radians)), axis=1).astype(np.float32)

    def count_tokens(self, texts: Any) -> int:
        return len(texts)


def batch(encoder: Any = None) -> Batch:
    return Resources(encoder or HashingEncoder(), models={NLI: HashingModel(NLI)}).batch()


def test_every_premise_is_asked_unless_the_pairs_are_pruned() -> None:
    pairs = Pairs(("h1", "h2"), ("p1", "p2", "p1"))
    assert pairs.asks(batch()) == [
        ("p1", "h1"),
        ("p2", "h1"),
        ("p1", "h1"),
        ("p1", "h2"),
        ("p2", "h2"),
        ("p1", "h2"),
    ]
    assert not list(pairs.embeds())


def test_pruned_pairs_are_the_most_similar_ones_each_premise_once() -> None:
    pairs = Pairs(("0", "80"), ("30", "70", "30", "10", "40"), top_k=2)
    assert list(pairs.embeds()) == ["0", "80", "30", "70", "10", "40"]
    chosen = pairs.premises_of(batch(Degrees()))
    assert chosen.tolist() == [[3, 0], [1, 4]]  # 10 and 30 degrees away from 0; 70 and 40 are nearest to 80
    assert pairs.asks(batch(Degrees())) == [("10", "0"), ("30", "0"), ("70", "80"), ("40", "80")]


def test_where_there_is_nothing_to_choose_nothing_is_embedded() -> None:
    pairs = Pairs(("h",), ("p1", "p2", "p1"), top_k=2)
    assert not list(pairs.embeds())
    assert pairs.premises_of(batch()).tolist() == [[0, 1]]


words = st.text("ab ", min_size=1, max_size=6)
texts = st.lists(words, min_size=1, max_size=5).map(tuple)


@given(texts, texts, st.integers(0, 6))
def test_pruning_only_ever_leaves_pairs_out(hypotheses: tuple[str, ...], premises: tuple[str, ...], top_k: int) -> None:
    shared = batch()
    every, pruned = Pairs(hypotheses, premises), Pairs(hypotheses, premises, top_k)
    entailments = pruned.entailments(shared, NLI)
    assert entailments.shape == pruned.premises_of(shared).shape
    expected = every.entailments(shared, NLI)
    assert np.array_equal(entailments, np.take_along_axis(expected, pruned.premises_of(shared), axis=1))
    if top_k == 0 or top_k >= len(set(premises)):
        assert np.array_equal(entailments.max(axis=1), expected.max(axis=1))
    assert sum(len(a) + len(b) for a, b in pruned.asks(shared)) <= pruned.characters()


def test_the_characters_of_all_pairs_are_exact_where_none_is_left_out() -> None:
    pairs = Pairs(("h", "hh"), ("p", "pp", "ppp"))
    assert pairs.characters() == sum(len(a) + len(b) for a, b in pairs.asks(batch())) == 21


@pytest.mark.parametrize("top_k", [0, 1])
def test_what_the_model_cannot_take_whole_is_not_a_number(top_k: int) -> None:
    class Short(HashingModel):
        def answer(self, asks: Any) -> Vectors:
            long = np.array([len(ask[1]) > 10 for ask in asks])
            return np.where(long[:, None], np.float32(np.nan), super().answer(asks))

    shared = Resources(HashingEncoder(), models={NLI: Short(NLI)}).batch()
    entailments = Pairs(("short", "much too long"), ("p", "q"), top_k).entailments(shared, NLI)
    assert np.isnan(entailments).tolist() == [[False] * entailments.shape[1], [True] * entailments.shape[1]]
