"""The embedding evaluators as one would write them first: each encodes its own texts, trace by trace.

The reference that the evaluators are compared with, and the rival of `benchmarks.embedding`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Vectors
from ragtide.evaluators.support.outcome import compare
from ragtide.evaluators.support.rarity import weight_by_length
from ragtide.evaluators.support.score import coefficients, features_of
from ragtide.evaluators.text.sentences import split
from ragtide.evaluators.text.steps import steps
from ragtide.evaluators.trace import Trace

Encode = Callable[[list[str]], Any]
Metrics = dict[str, float] | None  # None: not applicable


def naive(encode: Encode) -> Mapping[str, Callable[[Trace], Metrics]]:
    """Every embedding evaluator by id, over `encode`: texts to vectors of any length, such as
    SentenceTransformer.encode.
    """
    similar = partial(_similar, encode)
    return {
        "groundedness": lambda trace: _groundedness(trace, similar),
        "answer_relevancy_sentence": lambda trace: _answer_relevancy(trace, similar),
        "context_relevancy_soft": lambda trace: _context_relevancy(trace, similar),
        "context_mrr": lambda trace: _mrr(trace, similar),
        "retrieval_ranking": lambda trace: _ranking(trace, similar),
        "answer_semantic_similarity": lambda trace: _answer_similarity(trace, similar),
        "sentence_similarity": lambda trace: _sentence_similarity(trace, similar),
        "answer_semantic_sentence_similarity": lambda trace: _sentences_similarity(trace, similar),
        "step_alignment": lambda trace: _step_alignment(trace, similar),
        "support_embedding": lambda trace: _support(trace, similar),
    }


Similar = Callable[[Sequence[str], Sequence[str]], Vectors]


def _similar(encode: Encode, texts: Sequence[str], others: Sequence[str]) -> Vectors:
    one, other = np.asarray(encode(list(texts))), np.asarray(encode(list(others)))
    lengths = np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(other, axis=1)[None, :]
    clipped: Vectors = np.clip((one @ other.T) / lengths, 0, 1)
    return clipped


def _cut(text: str | None) -> list[str]:
    return [sentence.text for sentence in split(text or "")]


def _groundedness(trace: Trace, similar: Similar) -> Metrics:
    answer = _cut(trace.answer)
    contexts = [sentence for chunk in trace.contexts or () for sentence in _cut(chunk.text)]
    if not answer or not contexts:
        return None
    return {"groundedness": min(max(row) for row in similar(answer, contexts).tolist())}


def _support(trace: Trace, similar: Similar) -> Metrics:
    """Words are read as `support` reads them: only the vectors are for itself."""
    shared = Resources().batch()
    fields = (trace.answer or "", trace.question, trace.contexts, trace.task)
    compared = compare(*fields, weight_by_length, shared)
    if trace.answer is None or isinstance(compared, NotApplicable):
        return None
    answer = [trace.answer[one.start : one.end] for one in compared.support.sentences]
    contexts = [sentence for text in compared.sources.texts for sentence in _cut(text)]
    nearest = [max(row) for row in similar(answer, contexts).tolist()] if contexts else [0.0] * len(answer)
    return {
        "support": coefficients("vectors").support(features_of(compared.support, nearest)),
        "weakest_sentence": 1 - max(one.share for one in compared.support.sentences),
    }


def _answer_relevancy(trace: Trace, similar: Similar) -> Metrics:
    answer = _cut(trace.answer)
    if not answer or not (trace.question or "").strip():
        return None
    scores = similar([trace.question or ""], answer)[0].tolist()
    return {"answer_relevancy": max(scores), "mean_answer_relevancy": sum(scores) / len(scores)}


def _relevance(trace: Trace, similar: Similar) -> list[float | None]:
    """Of each chunk; None of one that has nothing to read, or where nothing was asked."""
    found: list[float | None] = []
    for chunk in trace.contexts or ():
        if not (trace.question or "").strip():
            return []
        sentences = _cut(chunk.text)
        found.append(max(similar([trace.question or ""], sentences)[0].tolist()) if sentences else None)
    return found


def _retrieved_nothing(trace: Trace) -> bool:
    """Whether an empty retrieval was recorded for a question: the worst, rather than none."""
    return trace.contexts == () and bool((trace.question or "").strip())


def _context_relevancy(trace: Trace, similar: Similar) -> Metrics:
    if _retrieved_nothing(trace):
        return {"recall_relevancy": 0.0, "precision_relevancy": 0.0}
    scores = [score for score in _relevance(trace, similar) if score is not None]
    return {"recall_relevancy": max(scores), "precision_relevancy": sum(scores) / len(scores)} if scores else None


def _mrr(trace: Trace, similar: Similar) -> Metrics:
    scores = _relevance(trace, similar)[:10]
    if _retrieved_nothing(trace):
        return {"reciprocal_rank": 0.0}
    if all(score is None for score in scores):
        return None
    return {"reciprocal_rank": next((1 / i for i, score in enumerate(scores, 1) if (score or 0) >= 0.7), 0.0)}


def _ranking(trace: Trace, similar: Similar) -> Metrics:
    if trace.contexts == () and (trace.relevance is not None or _retrieved_nothing(trace)):
        return dict.fromkeys(("retrieval_precision", "average_precision", "reciprocal_rank", "hit_rate", "ndcg"), 0.0)
    if trace.contexts and trace.relevance is not None:
        grades = [trace.relevance.get(chunk.id, 0.0) for chunk in trace.contexts]
        relevant = [grade > 0 for grade in grades]
    else:
        scores = _relevance(trace, similar)
        if all(score is None for score in scores):
            return None
        grades = [score or 0.0 for score in scores]
        relevant = [grade >= 0.7 for grade in grades]
    precisions = [sum(relevant[: i + 1]) / (i + 1) for i in range(len(grades)) if relevant[i]]
    discounts = [1 / np.log2(i + 2) for i in range(len(grades))]
    ideal = float(np.dot(sorted(grades, reverse=True), discounts))
    return {
        "retrieval_precision": sum(relevant) / len(relevant),
        "average_precision": sum(precisions) / len(precisions) if precisions else 0.0,
        "reciprocal_rank": 1 / (1 + relevant.index(True)) if any(relevant) else 0.0,
        "hit_rate": float(any(relevant)),
        "ndcg": float(np.dot(grades, discounts)) / ideal if any(relevant) else 0.0,
    }


def _references(trace: Trace) -> list[str]:
    """What the answer as a whole can be compared with."""
    return [text for text in trace.expected or () if text.strip()] if (trace.answer or "").strip() else []


def _answer_similarity(trace: Trace, similar: Similar) -> Metrics:
    scores = [similar([trace.answer or ""], [text])[0, 0].item() for text in _references(trace)]
    return {"answer_similarity": max(scores)} if scores else None


def _sentence_similarity(trace: Trace, similar: Similar) -> Metrics:
    words = set((trace.answer or "").lower().split())
    compared = []
    for text in _references(trace):
        others = set(text.lower().split())
        jaccard = len(words & others) / len(words | others)
        compared.append((similar([trace.answer or ""], [text])[0, 0].item(), jaccard))
    if not compared:
        return None
    cosine, jaccard = max(compared, key=lambda each: each[0])
    return {"cosine": cosine, "jaccard": jaccard}


def _sentences_similarity(trace: Trace, similar: Similar) -> Metrics:
    answer = _cut(trace.answer)
    compared = []
    for text in trace.expected or ():
        sentences = _cut(text)
        if answer and sentences:
            nearest = [max(row) for row in similar(answer, sentences).tolist()]
            compared.append((sum(nearest) / len(nearest), min(nearest)))
    if not compared:
        return None
    mean, least = max(compared)
    return {"mean_answer_similarity": mean, "min_answer_similarity": least}


def _step_alignment(trace: Trace, similar: Similar) -> Metrics:
    answer = [step.text for step in steps(trace.answer or "")]
    contexts = [step.text for chunk in trace.contexts or () for step in steps(chunk.text or "")]
    if not answer and not contexts:
        return None
    matches = (similar(answer, contexts) >= 0.7).tolist() if answer and contexts else []
    # Of the first i and j steps: edits, then (so that fewer is better) minus the matches, insertions, deletions.
    best: dict[tuple[int, int], tuple[int, int, int, int]] = {(0, 0): (0, 0, 0, 0)}
    for i in range(len(answer) + 1):
        for j in range(len(contexts) + 1):
            ways = []
            if i and j:
                edits, matched, inserted, deleted = best[i - 1, j - 1]
                same = matches[i - 1][j - 1]
                ways.append((edits + (not same), matched - same, inserted, deleted))
            if i:
                edits, matched, inserted, deleted = best[i - 1, j]
                ways.append((edits + 1, matched, inserted, deleted + 1))
            if j:
                edits, matched, inserted, deleted = best[i, j - 1]
                ways.append((edits + 1, matched, inserted + 1, deleted))
            if ways:
                best[i, j] = min(ways)
    edits, _, inserted, deleted = best[len(answer), len(contexts)]
    return {
        "edits": edits,
        "insertions": inserted,
        "deletions": deleted,
        "mismatches": edits - inserted - deleted,
        "context_steps": len(contexts),
        "answer_steps": len(answer),
    }
