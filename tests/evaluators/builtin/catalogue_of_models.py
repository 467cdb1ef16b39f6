"""The catalogue's entries of the `model` lane."""

from math import inf

from tests.evaluators.builtin.catalogue import Entry, Line

MODEL = {
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
    "faithfulness_nli": Entry(
        "generation",
        "nli",
        "mean",
        {"answer", "contexts"},
        (Line("faithfulness", 0, 1, "higher", 0.75, True),),
        more_params=("model", "threshold", "top_k", "attributions", "max_characters"),
    ),
    "hallucination": Entry(
        "generation",
        "classifier",
        "mean",
        {"answer", "contexts"},
        (Line("hallucination", 0, 1, "higher", 0.75, True),),
        {"model": "vectara/hallucination_evaluation_model"},
    ),
    "toxicity": Entry(
        "fairness",
        "classifier",
        "share",
        {"answer"},
        (
            Line("toxicity", 0, 1, "lower", 0.75, True),
            Line("severe_toxicity", 0, 1, "lower", 0.75),
            Line("obscene", 0, 1, "lower", 0.75),
            Line("threat", 0, 1, "lower", 0.75),
            Line("insult", 0, 1, "lower", 0.75),
            Line("identity_attack", 0, 1, "lower", 0.75),
        ),
        {"model": "original", "scan_question": False},
        ("locate",),
        ("question_toxicity",),
    ),
    "fairness_bias": Entry(
        "fairness",
        "classifier",
        "share",
        {"answer"},
        (Line("fairness_bias", 0, 1, "lower", 0.75, True),),
        {"model": "d4data/bias-detection-model"},
        ("locate",),
    ),
    "summarization_faithfulness": Entry(
        "summarization",
        "nli",
        "mean",
        {"question", "answer"},
        (
            Line("completeness", 0, 1, "higher", 0.75, True),
            Line("summac_conv", 0, 1, "higher", 0.75),
            Line("summac_zs", 0, 1, "higher", 0.75),
        ),
        more_params=("model", "convolution", "threshold", "top_k", "max_characters"),
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
}
