"""The built-in evaluators are what the catalogue says: id by id, metric by metric, parameter by parameter."""

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from evaluators.registry import load


class Line(NamedTuple):
    """A metric as the catalogue has it."""

    key: str
    low: float
    high: float
    better: str
    threshold: float | None
    primary: bool = False
    per: tuple[str, ...] = ()


class Entry(NamedTuple):
    """An evaluator as the catalogue has it; `more` are parameters and metrics that only we have."""

    domain: str
    method: str
    rule: str
    required: set[str]
    metrics: tuple[Line, ...]
    params: Mapping[str, Any] = MappingProxyType({})
    more_params: tuple[str, ...] = ()
    more_metrics: tuple[str, ...] = ()


CHECK = (
    Line("passes", 0, 1, "higher", 0.5, True),
    Line("failures", 0, 1, "lower", 0.5),
    Line("retrieval_failures", 0, 1, "lower", 0.5),
    Line("generation_failures", 0, 1, "lower", 0.5),
)
CHECK_WITHOUT_CONTEXTS = tuple(line for line in CHECK if line.key != "retrieval_failures")

CATALOGUE = {
    "answer_relevancy_sentence": Entry(
        "generation",
        "embedding",
        "mean",
        {"question", "answer"},
        (
            Line("answer_relevancy", 0, 1, "higher", 0.75, True),
            Line("mean_answer_relevancy", 0, 1, "higher", 0.75),
        ),
    ),
    "groundedness": Entry(
        "generation",
        "embedding",
        "mean",
        {"answer", "contexts"},
        (Line("groundedness", 0, 1, "higher", 0.75, True),),
    ),
    "context_relevancy_soft": Entry(
        "retrieval",
        "embedding",
        "mean",
        {"question", "contexts"},
        (
            Line("recall_relevancy", 0, 1, "higher", 0.75, True),
            Line("precision_relevancy", 0, 1, "higher", 0.75),
        ),
    ),
    "answer_semantic_similarity": Entry(
        "generation",
        "embedding",
        "mean",
        {"answer", "expected"},
        (Line("answer_similarity", 0, 1, "higher", 0.75, True),),
        {"cross_encoder": None},
    ),
    "answer_semantic_sentence_similarity": Entry(
        "generation",
        "embedding",
        "mean",
        {"answer", "expected"},
        (
            Line("mean_answer_similarity", 0, 1, "higher", 0.75, True),
            Line("min_answer_similarity", 0, 1, "higher", 0.75),
        ),
    ),
    "context_mrr": Entry(
        "retrieval",
        "embedding",
        "mean",
        {"question", "contexts"},
        (Line("reciprocal_rank", 0, 1, "higher", 0.75, True),),
        {"relevant_chunk_threshold": 0.7, "max_rank": 10},
    ),
    "retrieval_ranking": Entry(
        "retrieval",
        "embedding",
        "mean",
        {"question", "contexts"},
        (
            Line("retrieval_precision", 0, 1, "higher", 0.5),
            Line("average_precision", 0, 1, "higher", 0.5),
            Line("reciprocal_rank", 0, 1, "higher", 0.5),
            Line("hit_rate", 0, 1, "higher", 0.75),
            Line("ndcg", 0, 1, "higher", 0.75, True),
        ),
        {"relevant_chunk_threshold": 0.7, "grader": "embedding"},
    ),
    "step_alignment": Entry(
        "generation",
        "embedding",
        "mean",
        {"answer", "contexts"},
        (
            Line("edits", 0, inf, "lower", 0.75, True),
            Line("insertions", 0, inf, "lower", 0.75),
            Line("deletions", 0, inf, "lower", 0.75),
            Line("mismatches", 0, inf, "lower", 0.75),
            Line("context_steps", 0, inf, "higher", None),
            Line("answer_steps", 0, inf, "higher", None),
        ),
        {"match_threshold": 0.7},
    ),
    "sentence_similarity": Entry(
        "summarization",
        "embedding",
        "mean",
        {"answer", "expected"},
        (
            Line("cosine", 0, 1, "higher", 0.8, True),
            Line("jaccard", 0, 1, "higher", 0.8),
        ),
    ),
    "looping_detection": Entry(
        "generation",
        "rule",
        "mean",
        {"answer"},
        (
            Line("unique_sentences", 0, 1, "higher", 0.75, True),
            Line("longest_repeated_substring", 0, 1, "lower", 0.75),
            Line("compression_ratio", 0, inf, "higher", None),
        ),
    ),
    "agent_sanity": Entry(
        "generation",
        "rule",
        "mean",
        {"artifacts"},
        (Line("agent_sanity", 0, 1, "higher", 0.75, True),),
        more_params=("schemas",),
    ),
    "json_schema": Entry("generation", "rule", "share", {"answer"}, CHECK_WITHOUT_CONTEXTS, {"json_schema": {}}),
    "language_mismatch": Entry(
        "generation", "judge", "share", {"question", "answer"}, CHECK_WITHOUT_CONTEXTS, {"method": "auto"}
    ),
    "unsuccessful_requests": Entry(
        "generation",
        "judge",
        "mean",
        {"question", "answer"},
        (Line("unsuccessful", 0, 1, "lower", 0.1, True),),
        more_params=("phrases", "longest_words"),
    ),
    "text_matching": Entry("generation", "rule", "share", {"answer"}, CHECK),  # and condition or constraints
    "pii_leakage": Entry(
        "privacy",
        "rule",
        "any",
        {"answer"},
        CHECK,
        {"kinds": "all", "scan_contexts": True, "scan_question": False},
        ("region", "allow"),
        ("question_failures",),
    ),
    "encoding_guardrail": Entry("privacy", "rule", "any", {"answer"}, CHECK, {"evaluate_retrieved_context": True}),
    "sensitive_data_leakage": Entry(
        "privacy", "rule", "any", {"answer"}, CHECK, {"kinds": "all", "scan_contexts": True}
    ),
    "rouge": Entry(
        "summarization",
        "ngram",
        "mean",
        {"answer", "expected"},
        (
            Line("rouge_1", 0, 1, "higher", 0.75),
            Line("rouge_2", 0, 1, "higher", 0.75),
            Line("rouge_l", 0, 1, "higher", 0.75, True),
            Line("rouge_lsum", 0, 1, "higher", 0.75),
        ),
        {"use_stemmer": False, "rouge_types": ("rouge_1", "rouge_2", "rouge_l", "rouge_lsum")},
    ),
    "bleu": Entry(
        "summarization",
        "ngram",
        "mean",
        {"answer", "expected"},
        (
            Line("bleu_1", 0, 1, "higher", 0.75, True),
            Line("bleu_2", 0, 1, "higher", 0.75),
            Line("bleu_3", 0, 1, "higher", 0.75),
            Line("bleu_4", 0, 1, "higher", 0.75),
        ),
        {"max_order": 4, "smooth": True},
    ),
    "sari": Entry(
        "summarization",
        "ngram",
        "mean",
        {"question", "answer", "expected"},
        (Line("sari", 0, 100, "higher", None, True),),
    ),
    "meteor": Entry(
        "summarization",
        "ngram",
        "mean",
        {"answer", "expected"},
        (Line("meteor", 0, 1, "higher", None, True),),
        {"alpha": 0.9, "beta": 3.0, "gamma": 0.5},
        ("synonyms",),
    ),
    "readability": Entry(
        "summarization",
        "ngram",
        "mean",
        {"answer"},
        (Line("flesch_reading_ease", -inf, 121.22, "higher", 60, True),),
    ),
    "content_analysis": Entry(
        "summarization",
        "ngram",
        "mean",
        {"answer"},
        (
            Line("coverage", 0, 1, "higher", None, True),
            Line("density", 0, inf, "lower", None),
            Line("compression", 0, inf, "higher", None),
            Line("abstractness", 0, 1, "lower", None),
            Line("repetitiveness", 0, 1, "lower", None),
        ),
        {"ngram": 3},
    ),
    "exact_match": Entry(
        "generation",
        "ngram",
        "mean",
        {"answer", "expected"},
        (Line("exact_match", 0, 1, "higher", 0.8, True),),
        {"regexes_to_ignore": (), "ignore_case": False, "ignore_punctuation": False, "ignore_numbers": False},
    ),
    "text_quality": Entry(
        "generation",
        "ngram",
        "mean",
        {"answer", "expected"},
        (
            Line("f1", 0, 1, "higher", 0.8, True),
            Line("precision", 0, 1, "higher", 0.8),
            Line("recall", 0, 1, "higher", 0.8),
        ),
    ),
    "classification": Entry(
        "classification",
        "window",
        "value",
        set(),  # labels, or answer and expected
        (
            Line("accuracy", 0, 1, "higher", 0.75, True),
            *(Line(key, 0, 1, "higher", 0.75) for key in ("precision", "recall", "f1", "roc_auc")),
            *(
                Line(f"{average}_{key}", 0, 1, "higher", 0.8)
                for average in ("micro", "macro")
                for key in ("precision", "recall", "f1")
            ),
            *(Line(f"class_{key}", 0, 1, "higher", None, per=("class",)) for key in ("precision", "recall", "f1")),
        ),
        {"labels_from": "auto", "curve_thresholds": (0.05, 0.95, 0.05), "curve_max_examples": 1},
        ("positive",),
    ),
    "object_detection": Entry(
        "vision",
        "window",
        "value",
        {"boxes"},
        (
            Line("map", 0, 1, "higher", 0.5, True),
            Line("map_50", 0, 1, "higher", 0.5),
            Line("mar", 0, 1, "higher", 0.5),
            Line("ap", 0, 1, "higher", None, per=("class", "iou")),
            Line("ap_averaged", 0, 1, "higher", None, per=("class",)),
            Line("ar", 0, 1, "higher", None, per=("class",)),
        ),
        {
            "iou_thresholds": (0.5, 0.95, 0.05),
            "pr_curve_iou_threshold": 0.5,
            "pr_curve_max_examples": 1,
            "recall_score_threshold": 0,
        },
    ),
    "semantic_segmentation": Entry(
        "vision",
        "window",
        "value",
        {"boxes"},
        (
            Line("mean_iou", 0, 1, "higher", 0.5, True),
            Line("iou", 0, 1, "higher", None, per=("class",)),
        ),
    ),
    "inputs": Entry(
        "generation",
        "rule",
        "mean",
        set(),
        (
            Line("question_words", 0, inf, "higher", None),
            Line("answer_words", 0, inf, "higher", None),
            Line("contexts", 0, inf, "higher", None),
            Line("context_words", 0, inf, "higher", None),
        ),
    ),
    "operations": Entry(
        "generation",
        "rule",
        "mean",
        set(),
        (
            Line("latency_seconds", 0, inf, "lower", None, True),
            Line("time_to_first_token_seconds", 0, inf, "lower", None),
            Line("input_tokens", 0, inf, "lower", None),
            Line("output_tokens", 0, inf, "lower", None),
            Line("cost_usd", 0, inf, "lower", None),
            Line("error", 0, 1, "lower", 0.05, True),
            Line("empty_answer", 0, 1, "lower", 0.05, True),
            Line("empty_contexts", 0, 1, "lower", 0.05, True),
        ),
    ),
}


def test_every_evaluator_of_the_catalogue_is_there() -> None:
    assert CATALOGUE.keys() <= load().keys()


@pytest.mark.parametrize("id", CATALOGUE)
def test_an_evaluator_is_what_the_catalogue_says(id: str) -> None:
    evaluator, entry = load()[id], CATALOGUE[id]
    declared = {
        Line(metric.key, metric.low, metric.high, metric.better, metric.threshold, metric.primary, metric.per)
        for metric in evaluator.metrics
        if metric.key not in entry.more_metrics
    }
    assert declared == set(entry.metrics)
    assert {metric.key for metric in evaluator.metrics} == {line.key for line in entry.metrics} | {*entry.more_metrics}
    assert (evaluator.domain, evaluator.method) == (entry.domain, entry.method)
    assert {evaluator.rule_of(metric) for metric in evaluator.metrics} == {entry.rule}
    assert set(evaluator.required) == entry.required
    params = evaluator.params().model_dump()
    assert {name: value for name, value in params.items() if name not in entry.more_params} == entry.params
    assert set(params) == {*entry.params, *entry.more_params}


@pytest.mark.parametrize("id", CATALOGUE)
def test_every_metric_and_parameter_says_what_it_is(id: str) -> None:
    evaluator = load()[id]
    assert evaluator.description
    assert all(metric.description for metric in evaluator.metrics)
    assert all(field.description for field in evaluator.params.model_fields.values())


def test_standards_follow_domain_and_inputs() -> None:
    registry = load()
    assert registry["pii_leakage"].standards == ("Privacy Enhanced", "Secure and Resilient")
    assert registry["groundedness"].standards == ("Valid and Reliable", "Outcomes Analysis")
    assert registry["rouge"].standards == ("Valid and Reliable", "Outcomes Analysis", "Conceptual Soundness")


@pytest.mark.parametrize("id", CATALOGUE)
def test_lanes_follow_the_method(id: str) -> None:
    evaluator = load()[id]
    assert evaluator.lane == ("model" if evaluator.method == "embedding" else "fast")


def test_summaries_are_all_that_some_evaluators_look_at() -> None:
    assert {id for id, evaluator in load().items() if evaluator.tasks == ("summarization",)} >= {
        "content_analysis",
        "sari",
    }
