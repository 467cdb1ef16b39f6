"""Do answers cite the chunks that were retrieved?"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field
from ragtide.evaluators import Chunk, Evidence, Metric, NotApplicable, Outcome, Scored, Shared, evaluator

BRACKETS = re.compile(r"\[([^\[\]]{1,500})\](?!\()")  # not the text of a Markdown link
NAME = re.compile(r"[^\s,;]+")
MAX_EVIDENCE = 20  # invalid citations in the evidence


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and the retrieved chunks."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """How answers cite."""

    by: Literal["id", "position"] = Field("id", description="Text in brackets: the id of a chunk, or 1 for the first.")


class Citation(NamedTuple):
    """The name of a citation, and its place in the answer."""

    name: str
    start: int
    end: int


METRICS = (
    Metric(
        "valid_citations",
        threshold=1.0,
        primary=True,
        rule="share",
        optional=True,
        description="citations that name a retrieved chunk / citations; absent if nothing is cited",
    ),
    Metric("cited", threshold=1.0, primary=True, description="1 if the answer cites a retrieved chunk"),
)


@evaluator(
    "cited_chunks",
    version=1,
    domain="generation",
    method="rule",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
)
def cited_chunks(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Share of the citations in the answer that name a retrieved chunk. Citations stand in square brackets, several
    separated by commas or semicolons. Answers that cite by position use digits only.
    """
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    if not row.contexts:
        return NotApplicable("empty_contexts")
    by_position = params.by == "position"
    citations = [each for each in _citations(row.answer) if each.name.isdecimal() or not by_position]
    names = {str(at) for at in range(1, len(row.contexts) + 1)} if by_position else {c.id for c in row.contexts}
    invented = [each for each in citations if each.name not in names]
    valid = len(citations) - len(invented)
    metrics = {"cited": float(valid > 0)}
    if citations:
        metrics["valid_citations"] = valid / len(citations)
    return Scored(
        metrics,
        parts={"citations": float(len(citations)), "invented": float(len(invented))},
        evidence=tuple(Evidence("answer", at.start, at.end, kind="no_such_chunk") for at in invented[:MAX_EVIDENCE]),
    )


def _citations(answer: str) -> Iterator[Citation]:
    for brackets in BRACKETS.finditer(answer):
        first = brackets.start(1)
        for name in NAME.finditer(brackets[1]):
            yield Citation(name[0], first + name.start(), first + name.end())
