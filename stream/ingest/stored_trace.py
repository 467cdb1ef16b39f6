"""Rebuild a trace from its stored texts exactly as it was evaluated, so that labels can be joined."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from ragtide.evaluators.trace import AppError, Chunk, Trace

_encode = msgspec.json.encode
_trace = msgspec.json.Decoder(Trace)
_attributes = msgspec.json.Decoder(dict)
_PLACEHOLDER = ""  # in the place of a text that was recorded and stands in a column of its own


class StoredTexts(msgspec.Struct, frozen=True):
    """Columns of `trace_texts`, in full."""

    question: str | None
    answer: str | None
    chunks: Sequence[str]
    expected: Sequence[str]
    error_message: str
    attributes: str
    rest: str


def rest_of(trace: Trace) -> str:
    """JSON of all that the other columns of `trace_texts` do not hold, without the user, who may be hashed."""
    contexts, expected, error = trace.contexts, trace.expected, trace.error
    return _encode(
        replace(
            trace,
            question=None,
            answer=None,
            contexts=contexts and tuple(map(_without_text, contexts)),
            expected=None if expected is None else (),
            error=error and replace(error, message=_placeholder(error.message)),
            attributes={},
            user_id=None,
            source=None,
        )
    ).decode()


def rebuild_trace(texts: StoredTexts, user_id: str) -> Trace:
    """Rebuild the trace of these texts, with this user and without its source."""
    rest = _trace.decode(texts.rest)
    contexts, error = rest.contexts, rest.error
    return replace(
        rest,
        question=texts.question,
        answer=texts.answer,
        contexts=contexts and tuple(map(_with_text, contexts, texts.chunks)),
        expected=None if rest.expected is None else tuple(texts.expected),
        error=error and _with_message(error, texts.error_message),
        attributes=_attributes.decode(texts.attributes),
        user_id=user_id or None,
    )


def _without_text(chunk: Chunk) -> Chunk:
    return replace(chunk, text=_placeholder(chunk.text))


def _with_text(chunk: Chunk, text: str) -> Chunk:
    return chunk if chunk.text is None else replace(chunk, text=text)


def _with_message(error: AppError, message: str) -> AppError:
    return error if error.message is None else replace(error, message=message)


def _placeholder(text: str | None) -> str | None:
    return None if text is None else _PLACEHOLDER
