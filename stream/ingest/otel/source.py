"""The words of the table of names: conventions, kinds of spans, places and forms of attributes."""

from typing import Literal, NamedTuple, TypeAlias

Convention = Literal[
    "OpenTelemetry",
    "OpenTelemetry GenAI",
    "OpenInference",
    "Traceloop",
    "Langfuse",
    "Confident AI",
    "TruLens",
    "MLflow",
    "Vercel AI SDK",
    "ragtide",
]

Kind = Literal[
    "llm",
    "retriever",
    "reranker",
    "embedding",
    "agent",
    "chain",
    "tool",
    "guardrail",
    "prompt",
    "evaluator",
    "other",
]

Of: TypeAlias = Literal["any span", "root", "request", "retriever", "reranker", "answer", "llm", "resource"]
# any span: the shallowest one that has it; root: the application's root, whatever its kind; request: that root if it is
# a chain or an agent; retriever, reranker: each of this kind; answer: the LLM call that wrote the answer; llm: each LLM
# call without an LLM call below it.

Form: TypeAlias = Literal[
    "text",  # a text or a number
    "number",
    "input",  # what went in: a text, or JSON that holds it
    "output",  # what came out: a text, or JSON that holds it
    "user message",  # the last message of the user, in a list of messages
    "assistant message",  # the first message of the assistant
    "indexed user message",  # as above, flattened: PREFIX.N.message.role
    "indexed assistant message",
    "legacy user message",  # flattened: PREFIX.N.role
    "legacy assistant message",
    "indexed text",  # flattened: PREFIX.N.…text
    "event user message",  # an event of the span
    "event assistant message",
    "system message",  # the last one of the system or developer
    "indexed system message",
    "legacy system message",
    "event system message",
    "system instructions",  # parts of one message
    "documents",  # a list of documents, in JSON or not
    "indexed documents",  # flattened: PREFIX.N.document.content
    "event documents",
    "texts",
    "milliseconds",
    "seconds",
    "time",  # RFC 3339
    "json key",  # `attribute:key`, a key of a JSON object
]


class Source(NamedTuple):
    """An attribute that a field may come from. `with_` is a second one that completes it, such as a version."""

    attribute: str
    convention: Convention
    of: Of = "any span"
    form: Form = "text"
    with_: str = ""
    seen: str = ""
