"""The catalogue's entries of the `judge` lane."""

from tests.evaluators.builtin.catalogue import CHECK_WITHOUT_CONTEXTS, Entry, Line


def _one(domain: str, rule: str, required: set[str], *lines: Line, **more: object) -> Entry:
    return Entry(domain, "judge", rule, required, lines, **more)  # type: ignore[arg-type]  # mypy: of **more


def _good(key: str, low: float = 0, primary: bool = True) -> Line:
    return Line(key, low, 1, "higher", 0.75, primary)


SAFETY = (
    *("harmful", "malicious", "bias", "toxic", "hateful"),
    *("sexual", "violent", "insensitive", "self_harm", "manipulative"),
)
JUDGE = {
    "answer_correctness": _one(
        "generation",
        "mean",
        {"answer", "expected"},
        _good("answer_correctness"),
        _good("factuality", primary=False),
        params={"factuality_weight": 0.75, "similarity_weight": 0.25},
    ),
    "answer_relevancy": _one(
        "generation", "mean", {"question", "answer"}, _good("answer_relevancy", -1), params={"questions": 3}
    ),
    "answer_relevance_statements": _one("generation", "mean", {"question", "answer"}, _good("answer_relevance")),
    "fact_check": Entry(  # endpoint and model are those of evaluators.judge.endpoint_by_evaluator
        "generation",
        "agent",
        "mean",
        {"question", "answer"},
        (_good("fact_check"),),
        params={"tools": ("search", "calculator"), "max_records_per_hour": 100},
        more_params=("max_steps",),
    ),
    "faithfulness": _one("generation", "mean", {"answer", "contexts"}, _good("faithfulness")),
    "hallucination_contradiction": _one(
        "generation",
        "mean",
        {"answer", "contexts"},
        Line("contradicted_contexts", 0, 1, "lower", 0.25, True),
    ),
    "noise_sensitivity": _one(
        "retrieval",
        "mean",
        {"answer", "contexts", "expected"},
        Line("noise_sensitivity", 0, 1, "lower", 0.25, True),
    ),
    "ragas": _one("generation", "mean", {"question", "answer", "contexts", "expected"}, _good("ragas")),
    "context_precision": _one(
        "retrieval",
        "mean",
        {"question", "contexts", "expected"},
        _good("context_precision"),
        _good("statement_precision", primary=False),
        params={"top_n": None},
    ),
    "context_recall": _one(
        "retrieval", "mean", {"contexts", "expected"}, _good("context_recall"), params={"unit": "sentences"}
    ),
    "context_relevancy": _one("retrieval", "mean", {"question", "contexts"}, _good("context_relevancy")),
    "context_relevance": _one("retrieval", "mean", {"question", "contexts"}, _good("context_relevance")),
    "context_entities_recall": _one("retrieval", "mean", {"contexts", "expected"}, _good("context_entities_recall")),
    "contact_information": _one("privacy", "any", {"answer"}, *CHECK_WITHOUT_CONTEXTS),
    "sexism": _one(
        "fairness",
        "share",
        {"answer"},
        *CHECK_WITHOUT_CONTEXTS,
        params={"scan_question": False},
        more_metrics=("question_failures",),
    ),
    "stereotypes": _one("fairness", "share", {"question", "answer"}, *CHECK_WITHOUT_CONTEXTS),
    "bias_opinions": _one("fairness", "share", {"answer"}, Line("bias", 0, 1, "lower", 0.25, True)),
    "toxicity_opinions": _one("fairness", "share", {"answer"}, Line("toxicity", 0, 1, "lower", 0.25, True)),
    "safety_critic": _one(
        "fairness",
        "any",
        {"answer"},
        Line("safe", 0, 1, "higher", 0.99, True),
        *(Line(category, 0, 1, "lower", 0.01) for category in SAFETY),
        params={"votes": 3, "categories": "all"},
    ),
    "summarization_judge": _one("summarization", "share", {"answer", "expected"}, *CHECK_WITHOUT_CONTEXTS),
    "summary_coherence": _one(
        "summarization", "mean", {"question", "answer"}, Line("summary_coherence", 1, 5, "higher", 3, True)
    ),
}
