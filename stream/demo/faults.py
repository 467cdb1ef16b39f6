"""Faults of the demo's application, and the metrics that each one moves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One regression. `moves` are the metrics that the demo's rules must catch it by, the clearest first."""

    name: str
    title: str  # for people: what broke
    moves: tuple[str, ...]


WRONG_CHUNKS = Fault(
    "wrong_chunks",
    "after a rebuild of the index the retriever returns wrong chunks",
    (
        "context_relevancy_soft.recall_relevancy",
        "answer_relevancy_sentence.answer_relevancy",
        "text_matching.passes",
        "rouge.rouge_l",
    ),
)
INVENTED = Fault("invented", "the answerer adds sentences that no chunk supports", ("groundedness.groundedness",))
LOOPING = Fault(
    "looping",
    "the answerer says its last sentence again and again",
    ("looping_detection.unique_sentences", "operations.cost_usd", "rouge.rouge_l"),
)
LEAKED_EMAIL = Fault("leaked_email", "some answers give away e-mail addresses", ("pii_leakage.passes",))
SLOW_EXPENSIVE = Fault(
    "slow_expensive",
    "the model is throttled: prompts are sent again and again, and paid for",
    ("operations.latency_seconds", "operations.cost_usd"),
)

FAULTS = {fault.name: fault for fault in (WRONG_CHUNKS, INVENTED, LOOPING, LEAKED_EMAIL, SLOW_EXPENSIVE)}
