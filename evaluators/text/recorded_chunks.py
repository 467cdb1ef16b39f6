"""What was recorded of a trace's chunks: ids alone are not texts."""

from ragtide.evaluators.trace import Chunk


def recorded_chunks(contexts: tuple[Chunk, ...] | None) -> tuple[Chunk, ...] | None:
    """The chunks whose text was recorded: None where no text was (ids only), () where nothing was retrieved."""
    if not contexts or None not in [chunk.text for chunk in contexts]:
        return contexts
    return tuple(chunk for chunk in contexts if chunk.text is not None) or None


def recorded_texts(contexts: tuple[Chunk, ...] | None) -> tuple[str, ...] | None:
    """The texts of `recorded_chunks`, in rank order."""
    chunks = recorded_chunks(contexts)
    return None if chunks is None else tuple(chunk.text for chunk in chunks if chunk.text is not None)
