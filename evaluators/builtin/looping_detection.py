import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, NoParams, Sentence, Shared, evaluator
from ragtide.evaluators.text.repeats import longest_repeat

MIN_SENTENCE = 10  # characters; "Yes." twice is no loop
MAX_COMPRESSED = 500_000  # bytes; zlib level 9 takes up to 3 s for 1 MB of random letters of a small alphabet
MAX_EVIDENCE = 10  # repeated sentences in the evidence


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
        description=f"distinct sentences / sentences; absent if no sentence has {MIN_SENTENCE} characters",
    ),
    Metric(
        "longest_repeated_substring",
        better="lower",
        threshold=0.75,
        description="length x non-overlapping occurrences of the longest repeated substring / length of the answer",
    ),
    Metric(
        "compression_ratio",
        high=inf,
        optional=True,
        description=f"bytes after zlib level 9 / bytes of the answer; absent beyond {MAX_COMPRESSED:,} bytes",
    ),
)


@evaluator(
    "looping_detection",
    version=1,
    domain="generation",
    method="rule",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
)
def looping_detection(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Whether the answer repeats itself: the share of distinct sentences, the share of the answer that the longest
    repeated substring covers, and the compression ratio.
    """
    answer = row.answer
    if not answer.strip():
        return NotApplicable("empty_answer")
    metrics: dict[str, float] = {}
    sentences = [sentence for sentence in shared.sentences(answer) if len(sentence.text) >= MIN_SENTENCE]
    if sentences:
        metrics["unique_sentences"] = len({sentence.text for sentence in sentences}) / len(sentences)
    repeat = longest_repeat(answer)
    covered = repeat.length * repeat.times / len(answer)
    metrics["longest_repeated_substring"] = covered
    raw = answer.encode("utf-8", "replace")
    if len(raw) <= MAX_COMPRESSED:
        metrics["compression_ratio"] = len(zlib.compress(raw, 9)) / len(raw)
    evidence = _repeats(sentences)
    if repeat.times:
        end = repeat.start + repeat.length
        evidence += (Evidence("answer", repeat.start, end, kind="longest_repeat", score=covered),)
    return Scored(metrics, evidence=evidence)


def _repeats(sentences: Sequence[Sentence]) -> tuple[Evidence, ...]:
    """Point at the second and later occurrences of sentences, up to `MAX_EVIDENCE`."""
    known: set[str] = set()
    found: list[Evidence] = []
    for sentence in sentences:
        if len(found) == MAX_EVIDENCE:
            break
        if sentence.text in known:
            found.append(Evidence("answer", sentence.start, sentence.end, kind="repeated_sentence"))
        known.add(sentence.text)
    return tuple(found)
