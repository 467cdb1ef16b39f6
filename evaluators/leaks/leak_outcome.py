"""The outcome of a search for leaks, shared by evaluators that differ only in kinds."""

from collections.abc import Callable, Iterable, Sequence

from ragtide.evaluators.leaks.scan import NAMES, Hit, Leaks
from ragtide.evaluators.outcome import Evidence, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.text.pass_metrics import pass_metrics
from ragtide.evaluators.text.recorded_chunks import recorded_chunks
from ragtide.evaluators.trace import Chunk

POINTED_AT = 20  # places of one kind in one text named in the evidence; more say nothing new


def leak_outcome(
    answer: str,
    contexts: tuple[Chunk, ...] | None,
    look: Callable[[str], Leaks],
    question: str | None = None,
) -> Outcome:
    """Fail if the answer or a chunk leaks. Leaks of the question are reported and do not count.

    NotApplicable("too_long") if nothing was found and the search was incomplete.
    """
    generation, asked = look(answer), look(question) if question is not None else None
    chunks = [(chunk, look(chunk.text or "")) for chunk in recorded_chunks(contexts) or ()]
    retrieval = _any(leaks.any for _, leaks in chunks)
    if generation.any is None or (not generation.any and retrieval is None):
        return NotApplicable("too_long")
    metrics = pass_metrics(generation.any, retrieval if chunks else None)
    if asked is not None and asked.any is not None:
        metrics["question_failures"] = float(asked.any)
    evidence = _evidence("answer", generation.hits)
    for chunk, leaks in chunks:
        evidence += _evidence("contexts", leaks.hits, chunk.id)
    evidence += _evidence("question", asked.hits if asked else ())
    leaked = sorted({hit.kind for hit in generation.hits} & NAMES.keys(), key=tuple(NAMES).index)
    findings = tuple(Finding(f"leaked_{kind}", f"The answer holds {NAMES[kind]}.") for kind in leaked)
    return Scored(metrics, evidence=tuple(evidence), findings=findings)


def _evidence(field: str, hits: Sequence[Hit], chunk_id: str | None = None) -> list[Evidence]:
    """Point at the first places of each kind."""
    seen: dict[str, int] = {}
    evidence = []
    for hit in hits:
        seen[hit.kind] = seen.get(hit.kind, 0) + 1
        if seen[hit.kind] <= POINTED_AT:
            evidence.append(Evidence(field, hit.start, hit.end, chunk_id, hit.kind))
    return evidence


def _any(leaks: Iterable[bool | None]) -> bool | None:
    """True if any is True, else None if any is None, else False."""
    told = set(leaks)
    return True if True in told else None if None in told else False
