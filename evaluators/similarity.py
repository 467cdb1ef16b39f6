"""How near texts are to each other in meaning, as every embedding evaluator takes it."""

from collections.abc import Sequence

from evaluators.spec import Shared, Vectors


def similarities(shared: Shared, texts: Sequence[str], others: Sequence[str]) -> Vectors:
    """Cosine similarity of each text with each of the others, from 0 (also where it is negative) to 1.

    Float32 [len(texts), len(others)].
    """
    vectors = shared.embed([*texts, *others])
    cosines: Vectors = vectors[: len(texts)] @ vectors[len(texts) :].T
    return cosines.clip(0.0, 1.0)
