"""The demo's application: retrieve with MiniLM, answer by extraction, trace the measurements."""

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime

from ragtide.evaluators.encoder import Encoder
from ragtide.evaluators.trace import Chunk, Latency, Model, Tokens, Trace
from ragtide.stream.demo import misbehaviour
from ragtide.stream.demo.corpus import Passage
from ragtide.stream.demo.faults import INVENTED, LEAKED_EMAIL, LOOPING, SLOW_EXPENSIVE, WRONG_CHUNKS, Fault
from ragtide.stream.demo.index import Hit, Index
from ragtide.stream.demo.prices import PRICES
from ragtide.stream.demo.questions import Question

APP = "docs-assistant"
ENVIRONMENT = "demo"
MODEL = "extractor-1"
PROMPT_VERSION = "v3"
TENANTS = ("acme", "globex", "initech")

_CHUNKS = 4
_LIKELY = 0.45  # similarity from which a further sentence goes into the answer
_ATTEMPTS = 3  # of a throttled endpoint
_BACK_OFF_S = (0.8, 1.6)


@dataclass(frozen=True, slots=True)
class _Retrieved:
    hits: tuple[Hit, ...]
    question_tokens: int
    seconds: float


class Application:
    """Answers questions about the corpus. Safe to await many at a time; the encoder runs in `executor`."""

    def __init__(
        self,
        index: Index,
        encoder: Encoder,
        executor: Executor,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._index = index
        self._encoder = encoder
        self._executor = executor
        self._clock = clock
        self._monotonic = monotonic
        self._tokens = {passage.id: encoder.count_tokens([passage.text]) for passage in index.passages}
        self._shift = len(index.passages) // 2

    async def answer(self, question: Question, fault: Fault | None, rng: random.Random) -> Trace:
        """Answer one question and return its trace. All randomness comes from `rng` before the first await."""
        style = random.Random(rng.getrandbits(64))
        trace_id = f"{rng.getrandbits(128):032x}"
        shift = self._shift if fault is WRONG_CHUNKS else 0
        loop = asyncio.get_running_loop()
        retrieved = await loop.run_in_executor(self._executor, self._retrieve, question.text, shift)
        generating = self._monotonic()
        attempts = _ATTEMPTS if fault is SLOW_EXPENSIVE else 1
        for _ in range(attempts - 1):
            await asyncio.sleep(style.uniform(*_BACK_OFF_S))
        answer = " ".join(_misbehave(_extract(retrieved.hits), fault, style))
        generation_s = self._monotonic() - generating
        prompt = retrieved.question_tokens + sum(self._tokens[hit.passage.id] for hit in retrieved.hits)
        tokens = Tokens(input=prompt * attempts, output=self._encoder.count_tokens([answer]) * attempts)
        return Trace(
            trace_id=trace_id,
            time=self._clock(),
            app=APP,
            environment=ENVIRONMENT,
            session_id=f"session-{style.randrange(500)}",
            question=question.text,
            answer=answer,
            contexts=tuple(_chunk(hit, rank) for rank, hit in enumerate(retrieved.hits, 1)),
            expected=(question.passage.sentences[0],) if question.golden else None,
            condition=f'"{question.passage.subject}"' if question.golden else None,
            model=Model(requested=MODEL, served=MODEL, provider="local", prompt_version=PROMPT_VERSION),
            latency=Latency(retrieved.seconds + generation_s, retrieved.seconds, generation_s),
            tokens=tokens,
            cost_usd=PRICES[MODEL].of(tokens.input or 0, tokens.output or 0),
            segments={"tenant": style.choice(TENANTS), "topic": question.passage.module},
            task="question_answering",
        )

    def _retrieve(self, question: str, shift: int) -> _Retrieved:
        began = self._monotonic()
        hits = self._index.search(self._encoder.encode([question])[0], _CHUNKS, shifted_by=shift)
        return _Retrieved(hits, self._encoder.count_tokens([question]), self._monotonic() - began)


def _extract(hits: tuple[Hit, ...]) -> tuple[str, ...]:
    """The first sentence of the best chunk, and further ones near to the question."""
    first = hits[0]
    return tuple(
        sentence
        for place, (sentence, score) in enumerate(zip(first.passage.sentences, first.sentence_scores, strict=True))
        if place == 0 or score >= _LIKELY
    )


def _misbehave(sentences: tuple[str, ...], fault: Fault | None, rng: random.Random) -> tuple[str, ...]:
    for broken, how in (
        (INVENTED, misbehaviour.invent),
        (LOOPING, misbehaviour.loop),
        (LEAKED_EMAIL, misbehaviour.leak),
    ):
        if fault is broken:
            return how(sentences, rng)
    return sentences


def _chunk(hit: Hit, rank: int) -> Chunk:
    passage: Passage = hit.passage
    return Chunk(id=passage.id, text=passage.text, score=round(hit.score, 6), rank=rank, source=passage.module)
