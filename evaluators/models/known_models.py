"""Models with short names or fixed revisions: their sources, and how to read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class KnownModel:
    """Source of a known model, and facts that its files do not state reliably."""

    source: str
    revision: str | None = None  # None: the newest that was fetched
    multi_label: bool = False  # each label has a probability of its own


# The names of Detoxify's models. Its checkpoints are pickles; the same authors keep the same models on the hub.
_DETOXIFY = {
    "original": "unitary/toxic-bert",
    "unbiased": "unitary/unbiased-toxic-roberta",
    "multilingual": "unitary/multilingual-toxic-xlm-roberta",
}

KNOWN_MODELS: Mapping[str, KnownModel] = MappingProxyType(
    {name: KnownModel(source, multi_label=True) for name, source in _DETOXIFY.items()}
    | {source: KnownModel(source, multi_label=True) for source in _DETOXIFY.values()}
    | {
        # Branch hhem-1.0-open: a cross-encoder with one score. The newer ones are of a class of their own, whose
        # Python code comes with the model.
        "vectara/hallucination_evaluation_model": KnownModel(
            "vectara/hallucination_evaluation_model", "58383384656cbaec2949a75a41f20e891e90a73b"
        ),
    }
)

# English, Apache-2.0, 44 million parameters without the vocabulary, MNLI and SNLI, safetensors, kept up by the authors
# of sentence-transformers.
NLI = "cross-encoder/nli-deberta-v3-small"
NLI_OF_SUMMAC = "tals/albert-xlarge-vitaminc-mnli"  # the one whose scores SummaC's convolution was learned on

# What models call a label, and what evaluators call it: Detoxify's own renaming, and FEVER's three answers.
SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "toxic": "toxicity",
        "severe toxic": "severe toxicity",
        "identity hate": "identity attack",
        "supports": "entailment",
        "refutes": "contradiction",
        "not enough info": "neutral",
    }
)
