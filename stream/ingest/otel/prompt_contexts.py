"""Take the texts of chunks from the prompt of the answer, for retrievals that record none: an opt-in of the settings.

What the prompt holds is what the model saw. Evaluators of groundedness need that; ranks in it say nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ragtide.stream.ingest.otel.reading import PROMPT_READERS, Reader
from ragtide.stream.ingest.otel.source import Source
from ragtide.stream.ingest.otel.spans import Span
from ragtide.stream.ingest.otel.unwrap import Missing
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.settings.prompt_markers import Markers, compile_markers

LONGEST_PROMPT = 1_000_000  # characters
MOST_MATCHES = 1_000  # of the markers: more find something else than chunks


class PromptChunks(NamedTuple):
    """Texts of chunks, and the attribute of the LLM call that holds them."""

    texts: Sequence[str]
    span: Span
    source: Source


class _Message(NamedTuple):
    text: str
    source: Source


class PromptRule:
    """How chunks are found in a prompt. `markers` None: the whole message without the question is one chunk."""

    def __init__(self, markers: Markers | None) -> None:
        self._markers = markers

    def find(self, answer: Span | None, question: str) -> PromptChunks | Missing:
        """Find chunks in the last user message of the LLM call, or in its last system message; else say why not."""
        if answer is None:
            return _not_found("no LLM call came")
        messages = [found for readers in PROMPT_READERS if (found := _message(answer, readers)) is not None]
        if not messages:
            return _not_found("its text is not recorded")
        short = [one for one in messages if len(one.text) <= LONGEST_PROMPT]
        if not short:
            return _not_found(f"it has more than {LONGEST_PROMPT:,} characters")
        if self._markers is None:
            return _whole(answer, short, question)
        why = "the markers are not in it"
        for message in short:
            texts = _cut(self._markers, message.text.encode(errors="replace"))
            if texts:
                return PromptChunks(texts, answer, message.source)
            if texts is None:
                why = f"the markers match more than {MOST_MATCHES:,} times"
        return _not_found(why)


def prompt_rule(otel: OtelSettings) -> PromptRule | None:
    """The rule of the settings; None if texts are not taken from prompts."""
    if otel.contexts_from_prompt == "off":
        return None
    is_whole = otel.contexts_from_prompt == "whole"
    markers = None if is_whole else compile_markers(otel.context_start, otel.context_end, otel.context_template)
    return PromptRule(markers)


def _message(span: Span, readers: Sequence[Reader]) -> _Message | None:
    for reader in readers:
        found = reader.read(span, reader.source.attribute)
        if isinstance(found, str) and found.strip():
            return _Message(found, reader.source)
    return None


def _not_found(why: str) -> Missing:
    return Missing("not_in_prompt", why)


def _whole(answer: Span, messages: Sequence[_Message], question: str) -> PromptChunks | Missing:
    """The longer one of the messages without the question: the other one has instructions, or nothing else."""
    rests = [one._replace(text=_without_last(one.text, question.strip())) for one in messages]
    longest = max(rests, key=lambda one: len(one.text))
    if not longest.text:
        return _not_found("it is the question alone")
    return PromptChunks([longest.text], answer, longest.source)


def _without_last(text: str, part: str) -> str:
    before, found, after = text.rpartition(part) if part else ("", "", text)
    return f"{before}{after}".strip() if found else text.strip()


def _cut(markers: Markers, message: bytes) -> list[str] | None:
    """The texts between markers, without blank ones; None if there are too many matches.

    A chunk without its end is none: the message was cut short.
    """
    texts: list[str] = []
    at = matches = 0
    while (opened := markers.start.search(message, at)) is not None:
        if (matches := matches + 1) > MOST_MATCHES:
            return None
        begin, after = opened.end(), opened.start() + 1  # a marker may be of no length, as a boundary of a word
        if markers.end is None:
            following = markers.start.search(message, max(begin, after))
            stop = at = len(message) if following is None else following.start()
        else:
            closed = markers.end.search(message, begin)
            if closed is None:
                break
            stop, at = closed.start(), max(closed.end(), after)
        if text := message[begin:stop].decode(errors="replace").strip():
            texts.append(text)
    return texts
