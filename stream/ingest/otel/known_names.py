"""Tell names that are read from names of the same conventions that are not: new ones show as counts."""

from functools import lru_cache

from ragtide.stream.ingest.otel.names import FIELDS, KINDS, REFERENCES, SEGMENT_PREFIX, TASKS

# Read for other ends than a field, or on purpose for none.
_OTHER_NAMES = (
    "gen_ai.operation.name",
    "gen_ai.system_instructions",
    "gen_ai.response.id",
    "gen_ai.response.finish_reasons",
    "gen_ai.retrieval.top_k",
    "gen_ai.usage.total_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "input.mime_type",
    "output.mime_type",
    "metadata",
    "llm.token_count.total",
    "llm.finish_reason",
    "error.type",
    "exception.type",
    "exception.message",
    "tag.tags",
)
_OTHER_PREFIXES = (
    "gen_ai.request.",
    "gen_ai.tool.",
    "gen_ai.task.",
    "gen_ai.agent.",
    "llm.invocation_parameters",
    "llm.prompt_template.",
    "llm.tools.",
    "llm.cost.",
    "llm.token_count.",
    "embedding.",
    "traceloop.entity.",
    "traceloop.association.properties.",
    "langfuse.trace.",
    "langfuse.internal.",
    "langfuse.observation.",
    "ai.telemetry.",
    "ai.settings.",
)
# Prefixes of conventions: an attribute with one that is not in the table is counted under it.
PREFIXES = (
    "gen_ai.",
    "openinference.",
    "llm.",
    "retrieval.",
    "reranker.",
    "traceloop.",
    "langfuse.",
    "confident.",
    "ai.observability.",
    "ai.",
    "mlflow.",
)


@lru_cache(8_192)
def is_mapped(attribute: str) -> bool:
    """Whether the attribute is in the table, as it is or flattened."""
    return attribute in _NAMES or attribute.startswith(_MAPPED_PREFIXES)


_SOURCES = tuple(source for sources in FIELDS.values() for source in sources)
_NAMES = frozenset(
    (
        *_OTHER_NAMES,
        *(source.attribute.partition(":")[0] for source in _SOURCES),
        *(source.with_ for source in _SOURCES if source.with_),
        *(attribute for attribute, _, _ in (*KINDS, *TASKS)),
        *REFERENCES,
    )
)
_MAPPED_PREFIXES = (
    *_OTHER_PREFIXES,
    SEGMENT_PREFIX,
    *(
        f"{source.attribute}."
        for source in _SOURCES
        if source.form.startswith(("indexed", "legacy")) or "event" in source.form
    ),
)
