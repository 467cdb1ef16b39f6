"""What a classifier says of a text, and which of its sentences it says so of most."""

from collections.abc import Iterator

import numpy as np

from ragtide.evaluators.outcome import Evidence
from ragtide.evaluators.spec import Ask, ModelRef, Shared


def text_asks(model: ModelRef, text: str, shared: Shared, sentences: bool) -> Iterator[tuple[ModelRef, Ask]]:
    """The text, and its sentences where they are wanted; nothing of a blank one."""
    if text.strip():
        yield model, (text,)
        if sentences:
            yield from ((model, (sentence.text,)) for sentence in shared.sentences(text))


def probabilities(model: ModelRef, text: str, shared: Shared) -> dict[str, float] | None:
    """Of each of the model's labels; None where the model cannot take the text whole."""
    [row] = shared.ask(model, [(text,)])
    return None if np.isnan(row).any() else dict(zip(model.labels, map(float, row), strict=True))


def worst_sentence(model: ModelRef, label: str, text: str, shared: Shared) -> tuple[Evidence, ...]:
    """The answer's sentence of which the label is the most probable; nothing where it has none that can be taken."""
    sentences = shared.sentences(text)
    if not sentences:
        return ()
    column = shared.ask(model, [(sentence.text,) for sentence in sentences])[:, model.labels.index(label)]
    if np.isnan(column).all():
        return ()
    worst = int(np.nanargmax(column))
    sentence = sentences[worst]
    return (Evidence("answer", sentence.start, sentence.end, kind=label.lower(), score=float(column[worst])),)
