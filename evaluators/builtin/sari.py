from collections import Counter
from dataclasses import dataclass

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, NoParams, Shared, evaluator
from ragtide.evaluators.text.ngrams import Ngrams, ngrams
from ragtide.evaluators.text.references import no_reference
from ragtide.evaluators.text.tokenisers import lower_case_mteval

ORDERS = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The source text (question), the answer and its references."""

    question: str
    answer: str
    expected: tuple[str, ...]


METRICS = (
    Metric(
        "sari",
        high=100.0,
        primary=True,
        description="mean of F1 of kept, F1 of added and precision of deleted n-grams, x 100",
    ),
)


@evaluator(
    "sari",
    version=2,
    domain="summarization",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
    tasks=("summarization",),
    budget=Budget(characters=500_000),
)
def sari(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """SARI (Xu 2016) of the answer against the source text (the question) and the references: how well it keeps, adds
    and deletes n-grams of one to four tokens. This is the variant of Hugging Face: lower case, tokens of mteval-v13a,
    0 / 0 is 1, deletion by precision only, and an empty answer is one empty token, which is wrongly added. A blank
    reference is left out, where Hugging Face counts it. The parts are kept, added and deleted.
    """
    source, answer = shared.once(lower_case_mteval, row.question), shared.once(lower_case_mteval, row.answer) or [""]
    references = [tokens for tokens in (shared.once(lower_case_mteval, text) for text in row.expected) if tokens]
    if not source:
        return NotApplicable("empty_question")
    if not references:
        return no_reference(row.expected)
    kept = added = deleted = 0.0
    for order in ORDERS:
        before, after = ngrams(source, order), ngrams(answer, order)
        wanted: Ngrams = Counter()
        for reference in references:
            wanted.update(ngrams(reference, order))
        kept += _keep_score(before, after, wanted, len(references)) / len(ORDERS)
        added += _add_score(before, after, wanted) / len(ORDERS)
        deleted += _delete_score(before, after, wanted, len(references)) / len(ORDERS)
    score = 100 * (kept + added + deleted) / 3
    return Scored({"sari": min(score, 100.0)}, parts={"kept": kept, "added": added, "deleted": deleted})


def _keep_score(before: Ngrams, after: Ngrams, wanted: Ngrams, references: int) -> float:
    """Return F1. Counts of source and answer are multiplied by the number of references."""
    kept = {gram: references * min(before[gram], after[gram]) for gram in before.keys() & after.keys()}
    good = {gram: min(count, wanted[gram]) for gram, count in kept.items()}
    to_keep = sum(min(references * before[gram], wanted[gram]) for gram in before.keys() & wanted.keys())
    precision = sum(good[gram] / kept[gram] for gram in kept) / len(kept) if kept else 1.0
    return _f1(precision, sum(good.values()) / to_keep if to_keep else 1.0)


def _delete_score(before: Ngrams, after: Ngrams, wanted: Ngrams, references: int) -> float:
    """Return the precision."""
    deleted = {gram: references * (count - after[gram]) for gram, count in before.items() if count > after[gram]}
    good = sum(max(count - wanted[gram], 0) / count for gram, count in deleted.items())
    return good / len(deleted) if deleted else 1.0


def _add_score(before: Ngrams, after: Ngrams, wanted: Ngrams) -> float:
    """Return F1 of distinct n-grams."""
    added, to_add = after.keys() - before.keys(), wanted.keys() - before.keys()
    good = len(added & to_add)
    return _f1(good / len(added) if added else 1.0, good / len(to_add) if to_add else 1.0)


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
