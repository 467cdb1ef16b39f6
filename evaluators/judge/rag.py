"""What judges find in an answer, its contexts and its references. `ragas` joins what other evaluators find alone."""

from collections.abc import Sequence

from ragtide.evaluators.judge.calls import Conversation, JudgeCall, Section
from ragtide.evaluators.judge.formulas import share
from ragtide.evaluators.judge.replies import Texts
from ragtide.evaluators.judge.splitting import PIECE, pieces_of
from ragtide.evaluators.judge.steps import (
    ChunkReading,
    chunk_groups,
    read_chunks,
    sources_of,
    statements_of,
    supported,
    together,
)
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.spec import Budget, Shared
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.text.references import Reference
from ragtide.evaluators.trace import Chunk

BUDGET = Budget(characters=400_000, items=1_000, sentences=8_000)  # a record of this size takes hundreds of calls
NO_STATEMENTS = NotApplicable("no_statements")


def chunks_with_text(contexts: tuple[Chunk, ...]) -> tuple[Chunk, ...] | NotApplicable:
    """Return the chunks with recorded text, if a text is not blank."""
    chunks = recorded_chunks(contexts)
    if chunks is None:
        return NotApplicable("missing_contexts")
    return chunks if any((chunk.text or "").strip() for chunk in chunks) else NotApplicable("empty_contexts")


def texts_of(chunks: Sequence[Chunk]) -> list[str]:
    """Return the texts of chunks."""
    return [chunk.text or "" for chunk in chunks]


def faithfulness_of(answer: str, texts: Sequence[str], shared: Shared) -> Conversation[float | NotApplicable]:
    """Return the share of the answer's statements that the texts support."""
    claims = yield from statements_of(answer, shared)
    if not claims:
        return NO_STATEMENTS
    return share((yield from supported(claims, sources_of(texts, shared), shared)))


def questions_for(answer: str, number: int, shared: Shared) -> Conversation[list[str]]:
    """Return so many questions that the answer would answer. A long answer is read in pieces: so many for each."""
    asked = Section("number of questions", str(number))
    pieces = pieces_of(answer, PIECE, shared)
    replies = yield [JudgeCall("questions", (Section("answer", piece), asked), Texts, (number,)) for piece in pieces]
    return [text.strip() for reply in replies for text in [one for one in reply.texts if one.strip()][:number]]


def relevancy_of(question: str, questions: Sequence[str], shared: Shared) -> float:
    """Return the mean cosine similarity of the question to the others, from -1 to 1."""
    vectors = shared.embed([question, *questions])
    return float((vectors[1:] @ vectors[0]).mean().clip(-1, 1))


def readings_for(
    question: str, references: Sequence[Reference], texts: Sequence[str], shared: Shared
) -> Conversation[list[ChunkReading]]:
    """Return for each text whether it, and which of its sentences, help to give one of the references."""
    groups = chunk_groups(texts, shared)
    readings = yield from together(
        *(
            read_chunks("chunk_use", (Section("question", question), Section("reference", one.text)), groups)
            for one in references
        )
    )
    return [
        ChunkReading(
            any(one.verdict for one in of_chunk),
            tuple(any(picks) for picks in zip(*(one.picked for one in of_chunk), strict=True)),
        )
        for of_chunk in zip(*readings, strict=True)
    ]


def recall_of(
    references: Sequence[Reference], texts: Sequence[str], unit: str, shared: Shared
) -> Conversation[float | NotApplicable]:
    """Return the share of a reference's sentences, or statements, that the texts support: the best over references."""
    sources = sources_of(texts, shared)
    shares = yield from together(*(_recall_of_one(one.text, sources, unit, shared) for one in references))
    return max((one for one in shares if one is not None), default=NO_STATEMENTS, key=float)


def _recall_of_one(
    reference: str, sources: Sequence[tuple[Section, ...]], unit: str, shared: Shared
) -> Conversation[float | None]:
    if unit == "sentences":
        claims = [sentence.text for sentence in shared.sentences(reference)]
    else:
        claims = yield from statements_of(reference, shared)
    return share((yield from supported(claims, sources, shared))) if claims else None
