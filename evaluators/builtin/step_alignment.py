from collections.abc import Iterator
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

MAX_STEPS = 1_000  # of answer and contexts together
MAX_EVIDENCE = 10  # steps of each kind in the evidence


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the retrieved chunks."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """When two steps match."""

    match_threshold: float = Field(0.7, ge=0, le=1, description="Minimum cosine similarity of steps that match.")
    embedding_model: str = Field(
        PACKAGED_MODEL,
        min_length=1,
        description="Encoder of the steps, in the form of evaluators.encoder.model. match_threshold depends on it. "
        "shared means the encoder of the other evaluators.",
    )


class Steps(NamedTuple):
    """The steps of the answer, and those of the contexts with their chunks."""

    answer: tuple[Sentence, ...]
    contexts: list[tuple[Chunk, Sentence]]

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """Texts of the answer's steps, and of the contexts' steps."""
        return [step.text for step in self.answer], [step.text for _, step in self.contexts]

    @property
    def comparable(self) -> bool:
        """Whether both sides have steps, and not too many."""
        return bool(self.answer and self.contexts) and not self.too_many

    @property
    def too_many(self) -> bool:
        """Whether aligning them would take too long."""
        return len(self.answer) + len(self.contexts) > MAX_STEPS


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
    Metric(
        "edits",
        high=inf,
        better="lower",
        threshold=0.75,
        primary=True,
        description="insertions + deletions + mismatches",
    ),
    Metric(
        "insertions",
        high=inf,
        better="lower",
        threshold=0.75,
        description="steps of the contexts that are not in the answer",
    ),
    Metric(
        "deletions",
        high=inf,
        better="lower",
        threshold=0.75,
        description="steps of the answer that are not in the contexts",
    ),
    Metric(
        "mismatches",
        high=inf,
        better="lower",
        threshold=0.75,
        description="steps of the answer in place of other steps",
    ),
    Metric("context_steps", high=inf, description="steps of the contexts"),
    Metric("answer_steps", high=inf, description="steps of the answer"),
)


@evaluator(
    "step_alignment",
    version=1,
    domain="generation",
    method="embedding",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    needs={Need.EMBEDDING},
    embeds=_embeds,
    encoder=lambda params: params.embedding_model,
    budget=Budget(characters=500_000, sentences=2_000),
)
def step_alignment(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Whether the answer has all steps of the contexts, in order: the minimum number of steps to insert, delete and
    replace to turn the answer's list into the contexts' list. Steps are items of numbered, lettered and bulleted lists,
    and sentences that begin with "first", "then" or "finally". Two steps match if their cosine similarity reaches the
    threshold.
    """
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
        *(_extra(found.answer[i], "extra_step", similarity[i]) for i in deleted[:MAX_EVIDENCE]),
        *(_extra(found.answer[i], "mismatched_step", similarity[i, j : j + 1]) for i, j in replaced[:MAX_EVIDENCE]),
        *(_missing(*found.contexts[j], similarity[:, j]) for j in inserted[:MAX_EVIDENCE]),
    )
    return Scored({key: float(count) for key, count in counts.items()}, evidence=evidence)


def _extra(step: Sentence, kind: str, similarity: Vectors) -> Evidence:
    return Evidence("answer", step.start, step.end, kind=kind, score=_nearest(similarity))


def _missing(chunk: Chunk, step: Sentence, similarity: Vectors) -> Evidence:
    return Evidence("contexts", step.start, step.end, chunk.id, kind="missing_step", score=_nearest(similarity))


def _nearest(similarity: Vectors) -> float | None:
    """Return the highest similarity to a step of the other side, if it has any."""
    return float(similarity.max()) if similarity.size else None
