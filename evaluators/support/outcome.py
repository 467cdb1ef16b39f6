"""Scores an answer against its contexts, with evidence and findings: what the evaluators of this package share."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ragtide.evaluators.outcome import Evidence, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Sentence, Shared
from ragtide.evaluators.support.reading import SentenceSupport, Support, in_another_language, support_of
from ragtide.evaluators.support.score import Coefficients, features_of
from ragtide.evaluators.support.words import FEWEST_WORDS, UNKNOWN, language_of_words, raw_words
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.trace import Chunk

MAX_SENTENCES = 3  # in the evidence, the least supported first
MAX_SPANS = 20  # of each kind in the evidence
MAX_ANSWER_SENTENCES = 1_000
WEAK = 0.5  # share of a sentence's words that the contexts lack, from which it is in the evidence
_HEAD = 1_000  # characters of the contexts whose language is told
SUMMARIZATION = "summarization"

UNSUPPORTED_NUMBER = Finding("unsupported_number", "The answer has a number that its contexts lack.")
CONTRADICTED_NUMBER = Finding(
    "contradicted_number", "The answer has a number that its contexts lack, where they have another one."
)
UNSUPPORTED_NAME = Finding("unsupported_name", "The answer has a name that its contexts lack.")
CONTRADICTED_RECORD = Finding(
    "contradicted_record", "The answer states something that a record in its contexts denies."
)
CONTRADICTED_NEGATION = Finding(
    "contradicted_negation", "The answer and its contexts say the same, but only one of them negates it."
)


class Sources(NamedTuple):
    """The texts that must carry an answer, with the chunks or the field that each is from."""

    texts: tuple[str, ...]
    chunks: tuple[Chunk, ...]  # () if the only text is the question


class Compared(NamedTuple):
    """An answer that was compared with its sources."""

    sources: Sources
    support: Support


def sources_of(question: str | None, contexts: tuple[Chunk, ...] | None, task: str | None) -> Sources | NotApplicable:
    """Return the chunks with text; for a summary without chunks the text that it sums up, which is the question."""
    chunks = recorded_chunks(contexts)
    if not chunks and task == SUMMARIZATION and question and question.strip():
        return Sources((question,), ())
    if chunks is None:
        return NotApplicable("missing_contexts")
    read = tuple(chunk for chunk in chunks if chunk.text and chunk.text.strip())
    if not read:
        return NotApplicable("empty_contexts")
    return Sources(tuple(chunk.text or "" for chunk in read), read)


def compare(
    answer: str,
    question: str | None,
    contexts: tuple[Chunk, ...] | None,
    task: str | None,
    weight: Callable[[str], float],
    shared: Shared,
) -> Compared | NotApplicable:
    """Read how far the contexts carry each sentence of the answer; NotApplicable if that cannot be told."""
    sources = sources_of(question, contexts, task)
    if isinstance(sources, NotApplicable):
        return sources
    sentences: Sequence[Sentence] = shared.sentences(answer)
    if len(sentences) > MAX_ANSWER_SENTENCES:
        return NotApplicable("too_long")
    words = raw_words(answer)
    head = _head(sources.texts)
    code = language_of_words(words, head)
    if code == UNKNOWN and len(words) < FEWEST_WORDS:  # too short to tell: that of the contexts, if it is another not
        code = language_of_words(raw_words(head), answer)
    if in_another_language(words, head, code):
        return NotApplicable("other_language")
    texts = sources.texts if not question or question in sources.texts else (*sources.texts, question)
    support = support_of(sentences, words, texts, len(sources.chunks), code, weight, shared)
    return Compared(sources, support) if support.sentences else NotApplicable("too_short")


def _head(texts: Sequence[str]) -> str:
    head = ""
    for text in texts:
        head += text[: _HEAD - len(head)] + "\n"
        if len(head) >= _HEAD:
            break
    return head


def scored(compared: Compared, fitted: Coefficients, nearest: Sequence[float] | None = None) -> Outcome:
    """Return the score with its evidence. `nearest` has a cosine similarity for each sentence of the support."""
    sentences = compared.support.sentences
    weakest = max(sentences, key=lambda one: one.share)
    return Scored(
        {
            "support": fitted.support(features_of(compared.support, nearest)),
            "weakest_sentence": max(0.0, 1.0 - weakest.share),
        },
        {"answer_language": compared.support.language},
        {
            "sentences": float(len(sentences)),
            "unsupported_numbers": float(sum(len(one.numbers) for one in sentences)),
            "unsupported_names": float(sum(len(one.names) for one in sentences)),
        },
        tuple(_evidence(compared)),
        tuple(_findings(sentences)),
    )


def _evidence(compared: Compared) -> Iterator[Evidence]:
    """Yield the least supported sentences with their nearest chunk, then the places of errors."""
    sentences, chunks = compared.support.sentences, compared.sources.chunks
    order = sorted(sentences, key=lambda one: (-one.share, one.start))[:MAX_SENTENCES]
    for rank, one in enumerate(order):
        if rank and one.share < WEAK:
            break
        score = 1.0 - one.share
        yield Evidence("answer", one.start, one.end, kind="least_supported", score=score)
        if 0 <= one.nearest < len(chunks):
            chunk = chunks[one.nearest]
            yield Evidence("contexts", 0, len(chunk.text or ""), chunk.id, kind="nearest", score=score)
    for kind, spans in (
        ("unsupported_number", [span for one in sentences for span in one.numbers]),
        ("unsupported_name", [span for one in sentences for span in one.names]),
        ("contradicted_record", [span for one in sentences for span in one.denied]),
        ("contradicted_negation", [(one.start, one.end) for one in sentences if one.reversed]),
    ):
        yield from (Evidence("answer", start, end, kind=kind) for start, end in spans[:MAX_SPANS])


def _findings(sentences: Sequence[SentenceSupport]) -> Iterator[Finding]:
    for finding, found in (
        (UNSUPPORTED_NUMBER, any(one.numbers for one in sentences)),
        (CONTRADICTED_NUMBER, any(one.other_numbers for one in sentences)),
        (UNSUPPORTED_NAME, any(one.names for one in sentences)),
        (CONTRADICTED_RECORD, any(one.denied for one in sentences)),
        (CONTRADICTED_NEGATION, any(one.reversed for one in sentences)),
    ):
        if found:
            yield finding
