import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, NoParams, Sentence, Shared, evaluator
from ragtide.evaluators.text.repeats import longest_repeat

SHORTEST_SENTENCE = 10  # characters; "Yes." twice is no loop
COMPRESSED = 500_000  # bytes; zlib's level 9 takes up to 3 s for 1 MB: random letters of a small alphabet
POINTED_AT = 10  # repeated sentences named in the evidence, at most


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer alone."""

    answer: str


METRICS = (
    Metric(
        "unique_sentences",
        threshold=0.75,
        primary=True,
        optional=True,
        description=f"distinct sentences / sentences; absent where none has {SHORTEST_SENTENCE} characters",
    ),
    Metric(
        "longest_repeated_substring",
        better="lower",
        threshold=0.75,
        description="its length x its non-overlapping occurrences / length of the answer",
    ),
    Metric(
        "compression_ratio",
        high=inf,
        optional=True,
        description=f"bytes of zlib level 9 / bytes of the answer; absent beyond {COMPRESSED:,} bytes",
    ),
)


@evaluator(
    "looping_detection",
    version=1,
    domain="generation",
    method="rule",
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
)
def looping_detection(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """Whether the answer goes round in circles: the share of distinct sentences, how much of it the longest repeated
    substring covers, and how well it compresses.
    """
    for row in rows:
        yield _looping(row.answer, shared)


def _looping(answer: str, shared: Shared) -> Outcome:
    if not answer.strip():
        return NotApplicable("empty_answer")
    metrics: dict[str, float] = {}
    sentences = [sentence for sentence in shared.sentences(answer) if len(sentence.text) >= SHORTEST_SENTENCE]
    if sentences:
        metrics["unique_sentences"] = len({sentence.text for sentence in sentences}) / len(sentences)
    repeat = longest_repeat(answer)
    covered = repeat.length * repeat.times / len(answer)
    metrics["longest_repeated_substring"] = covered
    raw = answer.encode("utf-8", "replace")
    if len(raw) <= COMPRESSED:
        metrics["compression_ratio"] = len(zlib.compress(raw, 9)) / len(raw)
    evidence = _repeats(sentences)
    if repeat.times:
        end = repeat.start + repeat.length
        evidence += (Evidence("answer", repeat.start, end, kind="longest_repeat", score=covered),)
    return Scored(metrics, evidence=evidence)


def _repeats(sentences: Sequence[Sentence]) -> tuple[Evidence, ...]:
    """The second and later occurrences of a sentence, the first few of them."""
    seen: set[str] = set()
    found: list[Evidence] = []
    for sentence in sentences:
        if len(found) == POINTED_AT:
            break
        if sentence.text in seen:
            found.append(Evidence("answer", sentence.start, sentence.end, kind="repeated_sentence"))
        seen.add(sentence.text)
    return tuple(found)
