"""The catalogue's words for an evaluator, and its entries of the `fast` lane."""

from collections.abc import Mapping
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple


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

FAST = {
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
        {"kinds": "usual", "scan_contexts": True, "scan_question": False},  # all that the catalogue lists, and more
        ("regions", "allow"),
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
        (Line("flesch_reading_ease", -inf, 121.22, "higher", None, True),),
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
