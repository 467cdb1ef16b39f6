from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import Evidence, NotApplicable, Outcome, Scored
from ragtide.evaluators.settings import PACKAGED_MODEL
from ragtide.evaluators.spec import Budget, Metric, Need, Sentence, Shared, Vectors, evaluator
from ragtide.evaluators.text.alignment import align
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.text.similarity import similarities
from ragtide.evaluators.text.steps import steps
from ragtide.evaluators.trace import Chunk

MOST_STEPS = 1_000  # of both sides together
POINTED_AT = 10  # steps of a kind named in the evidence, at most


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the chunks whose steps it should give."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """When two steps are one."""

    match_threshold: float = Field(0.7, ge=0, le=1, description="Least cosine similarity of steps that match.")
    embedding_model: str = Field(
        PACKAGED_MODEL,
        min_length=1,
        description="Encoder of the steps, as evaluators.encoder.model takes it, whose line match_threshold is; "
        "shared: that of the other evaluators.",
    )


class Steps(NamedTuple):
    """The steps of both sides; those of contexts with the chunk they stand in."""

    answer: tuple[Sentence, ...]
    contexts: list[tuple[Chunk, Sentence]]

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """Those of the answer, and those of the contexts."""
        return [step.text for step in self.answer], [step.text for _, step in self.contexts]

    @property
    def comparable(self) -> bool:
        """Whether there is a pair of steps, and not too many of them."""
        return bool(self.answer and self.contexts) and not self.too_many

    @property
    def too_many(self) -> bool:
        """Whether they would take too long."""
        return len(self.answer) + len(self.contexts) > MOST_STEPS


def _steps(row: Inputs, shared: Shared) -> Steps:
    chunks = recorded_chunks(row.contexts) or ()
    listed = [(chunk, step) for chunk in chunks for step in shared.once(steps, chunk.text or "")]
    return Steps(shared.once(steps, row.answer), listed)


def _embeds(row: Inputs, shared: Shared, params: Params) -> Iterator[str]:
    found = _steps(row, shared)
    if found.comparable:
        for texts in found.texts:
            yield from texts


METRICS = (
    Metric("edits", high=inf, better="lower", threshold=0.75, primary=True, description="all three together"),
    Metric("insertions", high=inf, better="lower", threshold=0.75, description="the contexts' steps that it lacks"),
    Metric("deletions", high=inf, better="lower", threshold=0.75, description="steps that the contexts do not have"),
    Metric("mismatches", high=inf, better="lower", threshold=0.75, description="steps that stand for another"),
    Metric("context_steps", high=inf, description="steps of the contexts"),
    Metric("answer_steps", high=inf, description="steps of the answer"),
)


@evaluator(
    "step_alignment",
    version=1,
    domain="generation",
    method="embedding",
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.EMBEDDING},
    embeds=_embeds,
    encoder=lambda params: params.embedding_model,
    budget=Budget(characters=500_000, sentences=2_000),
)
def step_alignment(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Whether the answer gives the contexts' steps, all and in order: the least steps to insert, delete and replace
    that turn its list into theirs. Steps are items of numbered, lettered and bulleted lists, and what "first", "then",
    "finally" begin; two match where their cosine similarity reaches the threshold.
    """
    for row in rows:
        yield _evaluate(row, shared, params)


def _evaluate(row: Inputs, shared: Shared, params: Params) -> Outcome:
    if recorded_chunks(row.contexts) is None:
        return NotApplicable("missing_contexts")
    found = _steps(row, shared)
    if not found.answer and not found.contexts:
        return NotApplicable("no_steps")
    if found.too_many:
        return NotApplicable("too_long")
    similarity = np.zeros((len(found.answer), len(found.contexts)), np.float32)
    if found.comparable:
        similarity = similarities(shared, *found.texts)
    matches = similarity >= params.match_threshold
    pairs, deleted, inserted = align(matches)
    replaced = [pair for pair in pairs if not matches[pair]]
    counts = {
        "edits": len(inserted) + len(deleted) + len(replaced),
        "insertions": len(inserted),
        "deletions": len(deleted),
        "mismatches": len(replaced),
        "context_steps": len(found.contexts),
        "answer_steps": len(found.answer),
    }
    evidence = (
        *(_extra(found.answer[i], "extra_step", similarity[i]) for i in deleted[:POINTED_AT]),
        *(_extra(found.answer[i], "mismatched_step", similarity[i, j : j + 1]) for i, j in replaced[:POINTED_AT]),
        *(_missing(*found.contexts[j], similarity[:, j]) for j in inserted[:POINTED_AT]),
    )
    return Scored({key: float(count) for key, count in counts.items()}, evidence=evidence)


def _extra(step: Sentence, kind: str, similarity: Vectors) -> Evidence:
    return Evidence("answer", step.start, step.end, kind=kind, score=_nearest(similarity))


def _missing(chunk: Chunk, step: Sentence, similarity: Vectors) -> Evidence:
    return Evidence("contexts", step.start, step.end, chunk.id, kind="missing_step", score=_nearest(similarity))


def _nearest(similarity: Vectors) -> float | None:
    """How similar the nearest of the other side's is, where there is one."""
    return float(similarity.max()) if similarity.size else None
