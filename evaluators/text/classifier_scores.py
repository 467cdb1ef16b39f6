"""Classifier scores of a text and of its worst sentence."""

from collections.abc import Iterator

import numpy as np

from ragtide.evaluators.outcome import Evidence
from ragtide.evaluators.spec import Ask, ModelRef, Shared


def text_asks(model: ModelRef, text: str, shared: Shared, sentences: bool) -> Iterator[tuple[ModelRef, Ask]]:
    """Yield the text and, if wanted, its sentences. Nothing if it is blank."""
    if text.strip():
        yield model, (text,)
        if sentences:
            yield from ((model, (sentence.text,)) for sentence in shared.sentences(text))


def probabilities(model: ModelRef, text: str, shared: Shared) -> dict[str, float] | None:
    """Return the probability of each label of the model. None if the model cannot read the whole text."""
    [row] = shared.ask(model, [(text,)])
    return None if np.isnan(row).any() else dict(zip(model.labels, map(float, row), strict=True))


def worst_sentence(model: ModelRef, label: str, text: str, shared: Shared) -> tuple[Evidence, ...]:
    """Point at the sentence of the answer with the highest probability of the label. Empty if none can be scored."""
    sentences = shared.sentences(text)
    if not sentences:
        return ()
    column = shared.ask(model, [(sentence.text,) for sentence in sentences])[:, model.labels.index(label)]
    if np.isnan(column).all():
        return ()
    worst = int(np.nanargmax(column))
    sentence = sentences[worst]
    return (Evidence("answer", sentence.start, sentence.end, kind=label.lower(), score=float(column[worst])),)
