"""Chunks with recorded text: an id alone is no text."""

from ragtide.evaluators.trace import Chunk


def recorded_chunks(contexts: tuple[Chunk, ...] | None) -> tuple[Chunk, ...] | None:
    """Return the chunks with recorded text. None if no text was recorded (ids only), () if nothing was retrieved."""
    if not contexts or None not in [chunk.text for chunk in contexts]:
        return contexts
    return tuple(chunk for chunk in contexts if chunk.text is not None) or None


def recorded_texts(contexts: tuple[Chunk, ...] | None) -> tuple[str, ...] | None:
    """Return the texts of `recorded_chunks`, in rank order."""
    chunks = recorded_chunks(contexts)
    return None if chunks is None else tuple(chunk.text for chunk in chunks if chunk.text is not None)
