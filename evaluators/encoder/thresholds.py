"""Measured thresholds of encoders: cosines of one model are lower than those of another, for good and bad records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class EncoderThresholds:
    """Differences to the defaults: thresholds by metric, and defaults of parameters by evaluator."""

    thresholds: Mapping[str, float] = field(default_factory=dict)
    params: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    same_answer: float | None = None  # least cosine of answers to one question that say the same; None: not measured


def _relevant(threshold: float) -> Mapping[str, Mapping[str, float]]:
    """Return the threshold of a relevant chunk for the evaluators that have one."""
    param = MappingProxyType({"relevant_chunk_threshold": threshold})
    return MappingProxyType({"context_mrr": param, "retrieval_ranking": param})


# By the encoder's name, as `ragtide.evaluators.encoder.model.name_of` has it. Measured on the sample traffic: half way
# between the 5th percentile of good records and the 95th of bad ones (python -m benchmarks.encoder_thresholds); what is
# not here is the catalogue's. The match_threshold of steps is the catalogue's, which is for MiniLM.
ENCODER_THRESHOLDS: Mapping[str, EncoderThresholds] = MappingProxyType(
    {
        "bge-small-en-v1.5": EncoderThresholds(
            thresholds=MappingProxyType(
                {
                    "answer_relevancy_sentence.mean_answer_relevancy": 0.65,
                    "answer_semantic_sentence_similarity.mean_answer_similarity": 0.7,
                    "answer_semantic_sentence_similarity.min_answer_similarity": 0.6,
                    "context_relevancy_soft.precision_relevancy": 0.65,
                    "groundedness.groundedness": 0.7,
                    "sentence_similarity.cosine": 0.75,
                }
            ),
            params=_relevant(0.75),
        ),
        "all-MiniLM-L6-v2": EncoderThresholds(
            thresholds=MappingProxyType(
                {
                    "answer_relevancy_sentence.answer_relevancy": 0.45,
                    "answer_relevancy_sentence.mean_answer_relevancy": 0.45,
                    "answer_semantic_sentence_similarity.mean_answer_similarity": 0.5,
                    "answer_semantic_sentence_similarity.min_answer_similarity": 0.4,
                    "answer_semantic_similarity.answer_similarity": 0.5,
                    "context_relevancy_soft.precision_relevancy": 0.35,
                    "context_relevancy_soft.recall_relevancy": 0.45,
                    "groundedness.groundedness": 0.55,
                    "sentence_similarity.cosine": 0.5,
                }
            ),
            params=_relevant(0.45),
            same_answer=0.3,  # python -m benchmarks.answers
        ),
    }
)
