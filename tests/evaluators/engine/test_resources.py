"""Work is done once, and memory is bounded."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.errors import Unavailable
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.runtime.vector_cache import VectorCache
from ragtide.evaluators.spec import Vectors


class Recorder(HashingEncoder):
    """Keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__(8)
        self.asked: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        return super().encode(texts)


def test_each_distinct_text_is_encoded_once() -> None:
    encoder = Recorder()
    resources = Resources(encoder)
    batch = resources.batch()
    batch.prefetch(["a", "b", "a"])
    batch.embed(["b", "a", "b"])
    batch.embed(["c", "a"])
    assert encoder.asked == [["a", "b"], ["c"]]
    resources.batch().embed(["d", "c", "b"])
    assert encoder.asked[2:] == [["d"]]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=6), st.sampled_from([0, 800, 10**6]))
def test_vectors_are_those_of_the_encoder_whatever_is_cached(asked: list[list[str]], limit: int) -> None:
    resources = Resources(HashingEncoder(8), limit)
    batch = resources.batch()
    for i, texts in enumerate(asked):
        if i % 2:
            batch = resources.batch()
        vectors = batch.embed(texts)
        assert vectors.dtype == np.float32
        np.testing.assert_array_equal(vectors, HashingEncoder(8).encode(texts))


def test_a_batch_keeps_its_vectors_even_where_the_cache_cannot() -> None:
    encoder = Recorder()
    batch = Resources(encoder, cache_bytes=0).batch()
    batch.prefetch(["a", "b"])
    batch.embed(["a"])
    batch.embed(["b", "a"])
    assert encoder.asked == [["a", "b"]]


def test_who_gets_vectors_may_write_to_them() -> None:
    resources = Resources(HashingEncoder(8))
    batch = resources.batch()
    for vectors in (batch.embed(["a", "b"]), resources.batch().embed(["a", "b"])):
        vectors[:] = 0
    np.testing.assert_array_equal(batch.embed(["a", "b"]), HashingEncoder(8).encode(["a", "b"]))
    np.testing.assert_array_equal(resources.batch().embed(["a", "b"]), HashingEncoder(8).encode(["a", "b"]))


@given(st.lists(st.lists(st.text(max_size=3), max_size=10), max_size=20), st.integers(0, 3000))
def test_the_cache_never_holds_more_than_its_limit(puts: list[list[str]], limit: int) -> None:
    cache, encoder = VectorCache(limit), HashingEncoder(16)
    for texts in puts:
        cache.put(texts, encoder.encode(texts))
        assert cache.size_bytes <= limit
        assert cache.size_bytes == len(cache) * (16 * 4 + 350)


def test_the_bytes_it_counts_are_the_bytes_it_takes() -> None:
    import tracemalloc

    texts, vectors = [f"text {i}" for i in range(5_000)], np.ones((5_000, 384), np.float32)
    cache = VectorCache(10**9)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for start in range(0, 5_000, 500):
            cache.put(texts[start : start + 500], vectors[start : start + 500])
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.8 * taken < cache.size_bytes < 1.25 * taken


def test_what_was_not_used_for_longest_goes_first() -> None:
    cache, encoder = VectorCache(3 * (8 * 4 + 350)), HashingEncoder(8)
    cache.put(["a", "b", "c"], encoder.encode(["a", "b", "c"]))
    cache.get(["a"])
    cache.put(["d"], encoder.encode(["d"]))
    assert [vector is not None for vector in cache.get(["a", "b", "c", "d"])] == [True, False, True, True]


def test_threads_share_it() -> None:
    resources = Resources(HashingEncoder(8), cache_bytes=2_000)
    expected = {text: HashingEncoder(8).encode([text])[0] for text in "abcdefghij"}

    def work(seed: int) -> bool:
        order = np.random.default_rng(seed).permutation(list(expected)).tolist()
        return bool((resources.batch().embed(order) == np.stack([expected[text] for text in order])).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(200)))
    assert resources.cache.size_bytes <= 2_000


def test_embedding_without_an_encoder_says_so() -> None:
    with pytest.raises(Unavailable, match=r"Need\.EMBEDDING"):
        Resources().batch().embed(["a"])
    assert Resources().batch().embed([]).shape == (0, 0)


def test_what_is_no_number_is_no_vector_and_is_not_kept() -> None:
    class Overflowing(Recorder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            vectors = super().encode(texts)
            vectors[[text == "bad" for text in texts], 0] = np.inf
            return vectors

    resources = Resources(Overflowing())
    with pytest.raises(FloatingPointError, match="hashing-8@1 gives vectors that are not finite"):
        resources.batch().embed(["good", "bad"])
    assert len(resources.cache) == 0
    assert np.isfinite(resources.batch().embed(["good"])).all()


def test_sentences_of_a_batch_are_split_once() -> None:
    batch = Resources().batch()
    assert batch.sentences("One. Two.") is batch.sentences("One. Two.")
    assert [s.text for s in batch.sentences("One. Two.")] == ["One.", "Two."]


def test_what_is_made_of_a_text_is_made_once_in_a_batch_by_each_function() -> None:
    made: list[str] = []

    def words(text: str) -> list[str]:
        made.append(text)
        return text.split()

    batch = Resources().batch()
    assert batch.once(words, "a b") is batch.once(words, "a b") == ["a", "b"]
    assert batch.once(len, "a b") == 3
    assert Resources().batch().once(words, "a b") == ["a", "b"]
    assert made == ["a b", "a b"]
