"""Do answers cite the chunks that were retrieved?"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluators import Chunk, Evidence, Metric, NotApplicable, Outcome, Scored, Shared, evaluator
from pydantic import BaseModel, Field

BRACKETS = re.compile(r"\[([^\[\]]{1,500})\](?!\()")  # not the text of a Markdown link
NAME = re.compile(r"[^\s,;]+")
POINTED_AT = 20  # citations of nothing named in the evidence, at most


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what was retrieved for it."""

    answer: str
    contexts: tuple[Chunk, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """How answers cite."""

    by: Literal["id", "position"] = Field(
        "id", description="What stands in brackets: a chunk's id, or 1 for the first."
    )


METRICS = (
    Metric(
        "valid_citations",
        threshold=1.0,
        primary=True,
        rule="share",
        optional=True,
        description="citations that name a retrieved chunk / citations; absent where nothing is cited",
    ),
    Metric("cited", threshold=1.0, primary=True, description="1 where the answer cites a retrieved chunk"),
)


@evaluator("cited_chunks", version=1, domain="generation", method="rule", inputs=Inputs, params=Params, metrics=METRICS)
def cited_chunks(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Share of the citations in the answer that name a retrieved chunk. A citation is what stands in square brackets,
    several parted by commas or semicolons; where answers cite by position, digits only.
    """
    for row in rows:
        yield _cited(row, params)


def _cited(row: Inputs, params: Params) -> Outcome:
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    if not row.contexts:
        return NotApplicable("empty_contexts")
    by_position = params.by == "position"
    citations = [each for each in _citations(row.answer) if each[0].isdecimal() or not by_position]
    names = {str(at) for at in range(1, len(row.contexts) + 1)} if by_position else {c.id for c in row.contexts}
    invented = [place for name, place in citations if name not in names]
    valid = len(citations) - len(invented)
    metrics = {"cited": float(valid > 0)}
    if citations:
        metrics["valid_citations"] = valid / len(citations)
    parts = {"citations": float(len(citations)), "invented": float(len(invented))}
    return Scored(metrics, parts=parts, evidence=tuple(invented[:POINTED_AT]))


def _citations(answer: str) -> Iterator[tuple[str, Evidence]]:
    """What is cited, and where it stands."""
    for brackets in BRACKETS.finditer(answer):
        for name in NAME.finditer(brackets[1]):
            start, end = (brackets.start(1) + offset for offset in name.span())
            yield name[0], Evidence("answer", start, end, kind="no_such_chunk")
