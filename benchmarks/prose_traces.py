"""Traces of ordinary size made of real prose: sentences of the standard library's docstrings."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count, islice

from ragtide.evaluators.text.sentences import split
from ragtide.evaluators.trace import Chunk, Trace
from ragtide.stream.demo import corpus

CHUNKS, CHUNK_SENTENCES, ANSWER_SENTENCES, EXPECTED_SENTENCES = 5, 8, 6, 3
REPEATED = 0.6  # of the retrieved chunks were retrieved before
_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def prose_traces(number: int, seed: int = 7) -> list[Trace]:
    """So many traces that share nothing but chunks, of which 60 % stand in an earlier trace; in every fourth trace
    answer and first chunk are lists.
    """
    rng = random.Random(seed)
    text = _drawn(rng)
    distinct = round(number * CHUNKS * (1 - REPEATED))
    pool = [_joined(text, CHUNK_SENTENCES) for _ in range(distinct)]
    slots = [*range(distinct), *(rng.randrange(distinct) for _ in range(number * CHUNKS - distinct))]
    rng.shuffle(slots)
    return [_trace(i, [pool[slot] for slot in slots[i * CHUNKS : (i + 1) * CHUNKS]], text) for i in range(number)]


def _trace(number: int, chunks: list[str], text: Iterator[str]) -> Trace:
    answer = [next(text) for _ in range(ANSWER_SENTENCES)]
    if number % 4 == 0:
        answer = [f"{i}. {sentence}\n" for i, sentence in enumerate(answer, 1)]
        chunks = ["- " + chunks[0].replace(". ", ".\n- "), *chunks[1:]]
    return Trace(
        trace_id=f"trace-{number}",
        time=_NOON,
        app="prose",
        question=next(text).rstrip(".") + "?",
        answer=" ".join(answer),
        contexts=tuple(Chunk(id=f"c{i}", text=chunk) for i, chunk in enumerate(chunks)),
        expected=(_joined(text, EXPECTED_SENTENCES),),
    )


def _joined(text: Iterator[str], sentences: int) -> str:
    return " ".join(islice(text, sentences))


def _drawn(rng: random.Random) -> Iterator[str]:
    """Sentences in a fixed random order, each once; then as often as wanted in another version."""
    passages = corpus.read(lambda text: [sentence.text for sentence in split(text)])
    found = list(dict.fromkeys(sentence for passage in passages for sentence in passage.sentences))
    rng.shuffle(found)
    yield from found
    for version in count(1):
        yield from (f"{sentence.rstrip('.')} of version {version}." for sentence in found)
