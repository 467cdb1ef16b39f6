"""Actions that help with a problem: of its evaluator if there are any, otherwise of its type."""

from ragtide.drift.problems.kinds import KINDS, KindInfo

_BY_EVALUATOR = {
    "groundedness": (
        "Compare the least grounded sentences of the examples with their chunks: which of the two is wrong?",
        "If context relevance fell too, fix retrieval first; otherwise check the prompt and the model version.",
    ),
    "answer_relevancy_sentence": (
        "Read the examples' questions and answers: does the model evade, or answer another question?",
    ),
    "context_relevancy_soft": (
        "Check that the index is complete and current, and that query and index use the same embedding model.",
        "Check what changed in chunking, filters and top-k.",
    ),
    "looping_detection": ("Check stop sequences, repetition penalty, temperature and the token limit of the model.",),
    "pii_leakage": (
        "Open the examples and find where the data came from: an indexed document, the question, or the model.",
        "Remove or mask the document in the index; allow-list addresses that are public on purpose.",
    ),
    "sensitive_data_leakage": (
        "Revoke the key or change the password, then open the examples to find its source.",
        "Remove or mask the document in the index, and search for other copies.",
    ),
    "encoding_guardrail": (
        "Open the examples and decode the answer: who asked for it, and why was it let through?",
        "Refuse such requests before the model sees them, and fix the source as for a plain leak.",
    ),
    "classification": (
        "See on the classification dashboard which classes are confused, and since when; read the worst examples.",
        "Check whether labels or classes changed, then prompt and model; another threshold may now fit better.",
    ),
    "agent_sanity": (
        "Check the kinds of unsound artifacts in the evidence, and rerun the agent's last step of an example.",
    ),
    "json_schema": (
        "See in the category `failure` whether answers are no JSON or which keyword they break.",
        "Turn on the model's JSON mode, and compare the prompt's schema with the configured one.",
    ),
    "language_mismatch": (
        "See in the categories which language is answered in which; state the language of the answer in the prompt.",
    ),
    "unsuccessful_requests": (
        "See in the category `refusal` whether answers are empty, refused, errors, or lack knowledge.",
        "If they lack knowledge, check retrieval; if they refuse, check the prompt and the model version.",
    ),
    "text_matching": ("Compare the condition that failed with the answers of the examples.",),
    "rouge": ("Compare answers and references of the examples; check that the references are still correct.",),
}
_BY_TYPE = {
    "accuracy": ("Read the examples, worst first, and compare the prompt and model versions before and after.",),
    "retrieval": (
        "Check the index, the embedding model and the retriever's settings; read the chunks of the examples.",
    ),
    "fairness": ("Read the examples, and roll back the change that caused them meanwhile.",),
    "privacy": ("Open the examples, stop the leak at its source, and follow your process for personal data.",),
    "security": ("Revoke what leaked, and find out how it got into the index or the answer.",),
    "data_quality": ("Read the reasons in the attributes, and check what the application sends.",),
    "efficiency": (
        "Compare retrieval and generation time of the examples; check load, model, and length of the contexts.",
    ),
    "cost": ("Compare input and output tokens of the examples: longer contexts, longer answers, or another model?",),
    "runtime": ("Read the errors of the examples, and the logs of the application at that time.",),
}
_FOR_JOBS = (
    "Run `ragtide jobs runs --failed` to see why runs failed, then read the logs of those times.",
    "Run `ragtide check` there: it tests the connections to ClickHouse, Kafka and Grafana.",
)
_BY_RESOURCE = {  # by what runs out
    "disk": (
        "Give the disk more room, or shorten the retention of rows and run `ragtide migrate`.",
        "Find the largest tables: SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active GROUP BY 1.",
    ),
    "dead_letters": (
        "Run `ragtide dead-letters list` to see the reasons, then fix the sender or the settings.",
        "Then run `ragtide dead-letters replay` to evaluate them.",
    ),
    "retention": (
        "Run `ragtide topics` to see the group's lag and workers, then start more workers or read their logs.",
        "Raise the topic's retention.ms until the group has caught up.",
    ),
}
_KIND_OF_ASPECT = {"missing": "missing_data", "error": "evaluator_error", "inputs": "input_drift"}


def actions_for(type_: str, evaluator: str, aspect: str, kind: str = "threshold", segment: str = "") -> tuple[str, ...]:
    """Return the actions of the kind, then those of the evaluator or else of the type; at least one.

    For storage the segment names the resource.
    """
    if aspect == "storage":
        return _BY_RESOURCE[segment]
    if aspect == "jobs":
        return _FOR_JOBS
    info = KINDS.get(kind, KindInfo())
    if not info.actions:
        info = KINDS.get(_KIND_OF_ASPECT.get(aspect, aspect), KindInfo())
    asked = tuple(one.replace("{evaluator}", evaluator or "the evaluator") for one in info.actions)
    if info.actions_suffice:
        return asked
    own: tuple[str, ...] = _BY_EVALUATOR.get(evaluator, ()) or _BY_TYPE.get(type_, ())
    return (*asked, *own)
