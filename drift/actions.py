"""What to do about a problem, in words: of its evaluator where we know better, else of its type."""

_OF_EVALUATOR = {
    "groundedness": (
        "Compare the least grounded sentences of the examples with their chunks: which of the two is wrong?",
        "If context relevance fell too, mend retrieval first; else look at the prompt and the model version.",
    ),
    "answer_relevancy_sentence": (
        "Read the examples' questions and answers: does the model evade, or answer another question?",
    ),
    "context_relevancy_soft": (
        "Check that the index is complete and current, and that query and index use the same embedding model.",
        "Look at what changed in chunking, filters and top-k.",
    ),
    "looping_detection": ("Check stop sequences, repetition penalty, temperature and the token limit of the model.",),
    "pii_leakage": (
        "Open the examples and find where the data came from: an indexed document, the question, or the model.",
        "Take the document out of the index, or mask it; allow-list addresses that are meant to be public.",
    ),
    "sensitive_data_leakage": (
        "Revoke the key or change the password, then open the examples and find where it came from.",
        "Take the document out of the index, or mask it, and look for other copies.",
    ),
    "encoding_guardrail": (
        "Open the examples and decode what the answer says: who asked for it, and what let it through?",
        "Refuse such requests before the model sees them, and mend the source as for a plain leak.",
    ),
    "classification": (
        "See on the classification dashboard which classes are confused since when; read the examples of the worst.",
        "Check whether labels or classes changed, then prompt and model; another threshold may now fit better.",
    ),
    "agent_sanity": (
        "Look at the kinds of unsound artifacts in the evidence, and run the agent's last step of an example again.",
    ),
    "json_schema": (
        "See in the category `failure` whether answers are no JSON or which keyword they break.",
        "Ask the model for JSON by its own setting, and compare the prompt's schema with the configured one.",
    ),
    "language_mismatch": (
        "See in the categories which language is answered in which; name the language of the answer in the prompt.",
    ),
    "unsuccessful_requests": (
        "See in the category `refusal` whether answers are empty, refused, errors, or lack knowledge.",
        "Where they lack knowledge, look at retrieval; where they refuse, at the prompt and the model version.",
    ),
    "text_matching": ("Compare the condition that failed with the answers of the examples.",),
    "rouge": ("Compare answers and references of the examples; check that the references are still true.",),
}
_OF_TYPE = {
    "accuracy": ("Read the examples, worst first, and compare the prompt and model versions before and after.",),
    "retrieval": (
        "Check the index, the embedding model and the retriever's settings; read the chunks of the examples.",
    ),
    "fairness": ("Read the examples, and stop the change that brought them while you look.",),
    "privacy": ("Open the examples, stop the leak at its source, and follow your process for personal data.",),
    "security": ("Revoke what leaked, and find out how it came into the index or the answer.",),
    "data_quality": ("Look at the reasons in the attributes, and at what the application sends.",),
    "efficiency": (
        "Compare retrieval and generation time of the examples; look at load, model, and length of the contexts.",
    ),
    "cost": ("Look at tokens in and out of the examples: longer contexts, longer answers, or another model.",),
    "runtime": ("Read the errors of the examples, and the logs of the application at that time.",),
}


def actions_for(type_: str, evaluator: str, aspect: str) -> tuple[str, ...]:
    """The evaluator's own where it has some, else those of the problem's type; at least one."""
    if aspect == "coverage":
        return (
            f"Look at why {evaluator} failed (reasons in the attributes), in the worker's logs and in table scores.",
            "Check that workers of its lane run, and the model or endpoint that the evaluator needs.",
        )
    return _OF_EVALUATOR.get(evaluator, ()) or _OF_TYPE[type_]
