"""The one table of attribute names: which attribute of which span becomes which field of a trace.

The order of a field's sources is their precedence. A new name changes this file only.
docs/opentelemetry.md shows the table.
"""

from collections.abc import Mapping
from typing import Final

from ragtide.stream.ingest.otel.source import Convention, Kind, Source

OTEL: Final = "OpenTelemetry"
GENAI: Final = "OpenTelemetry GenAI"
OI: Final = "OpenInference"
TL: Final = "Traceloop"
LF: Final = "Langfuse"
CA: Final = "Confident AI"
TR: Final = "TruLens"
ML: Final = "MLflow"
VA: Final = "Vercel AI SDK"
OURS: Final = "ragtide"

# The versions of the instrumentation in which the names of a convention were seen; a source may say otherwise.
SEEN: Mapping[Convention, str] = {
    OTEL: "semantic conventions 1.27 to 1.41",
    GENAI: "opentelemetry-util-genai 1.2b0, 1.3b0; semantic-conventions-genai until August 2026",
    OI: "openinference-instrumentation-langchain 0.1.80, -llama-index 4.6.1; semantic conventions 0.1.42",
    TL: "opentelemetry-instrumentation-langchain 0.62.1, 0.62.4; -llamaindex 0.62.4",
    LF: "langfuse 5.0.4; names of traces and experiments: source of the server, 2026",
    CA: "documentation; spans not seen",
    TR: "documentation; spans not seen",
    ML: "documentation; spans not seen",
    VA: "documentation; spans not seen",
    OURS: "this version",
}

_UNTIL_1_36 = "until semantic conventions 1.36"
_SINCE_AUGUST = "since August 2026"

# `ragtide.segments.NAME` of any span becomes segments.NAME.
SEGMENT_PREFIX: Final = "ragtide.segments."

FIELDS: Mapping[str, tuple[Source, ...]] = {
    "app": (
        Source("ragtide.app", OURS, "root"),
        Source("ragtide.app", OURS, "resource"),
        Source("service.name", OTEL, "resource"),
        Source("openinference.project.name", OI, "resource"),
        Source("traceloop.workflow.name", TL, "root"),
        Source("gen_ai.workflow.name", GENAI, "root"),
        Source("gen_ai.agent.name", GENAI, "root"),
        Source("agent.name", OI, "root"),
    ),
    "environment": (
        Source("langfuse.environment", LF),
        Source("deployment.environment.name", OTEL, "resource"),
        Source("deployment.environment", OTEL, "resource", seen="until semantic conventions 1.26"),
        Source("deployment.environment.name", OTEL),
        Source("deployment.environment", OTEL),
    ),
    "session_id": (
        Source("session.id", OI),
        Source("langfuse.session.id", LF),
        Source("gen_ai.conversation.id", GENAI),
        Source("traceloop.association.properties.session_id", TL),
        Source("confident.trace.thread_id", CA),
        Source("mlflow.trace.session", ML),
        Source("ai.telemetry.metadata.sessionId", VA),
    ),
    "user_id": (
        Source("user.id", OI),
        Source("langfuse.user.id", LF),
        Source("enduser.id", OTEL),
        Source("traceloop.association.properties.user_id", TL),
        Source("gen_ai.user", TL),
        Source("confident.trace.user_id", CA),
        Source("mlflow.trace.user", ML),
        Source("ai.telemetry.metadata.userId", VA),
    ),
    "question": (
        Source("langfuse.trace.input", LF, form="input"),
        Source("confident.trace.input", CA, form="input"),
        Source("ai.observability.record_root.input", TR, form="input"),
        Source("input.value", OI, "request", "input"),
        Source("traceloop.entity.input", TL, "request", "input"),
        Source("gen_ai.task.input", TL, "request", "input"),
        Source("gen_ai.input.messages", GENAI, "request", "user message"),
        Source("langfuse.observation.input", LF, "request", "input"),
        Source("gen_ai.retrieval.query.text", GENAI, "retriever"),
        Source("gen_ai.memory.query.text", GENAI, "retriever"),
        Source("input.value", OI, "retriever", "input"),
        Source("traceloop.entity.input", TL, "retriever", "input"),
        Source("langfuse.observation.input", LF, "retriever", "input"),
        Source("reranker.query", OI, "reranker"),
        Source("llm.input_messages", OI, "answer", "indexed user message"),
        Source("gen_ai.input.messages", GENAI, "answer", "user message"),
        Source("gen_ai.user.message", GENAI, "answer", "event user message", seen=_UNTIL_1_36),
        Source("ai.prompt.messages", VA, "answer", "user message"),
        Source("ai.prompt", VA, "answer", "input"),
        Source("gen_ai.prompt", TL, "answer", "legacy user message", seen="until 0.50"),
        Source("llm.prompts", OI, "answer", "indexed text"),
        Source("langfuse.observation.input", LF, "answer", "input"),
        Source("mlflow.spanInputs", ML, "answer", "input"),
        Source("input", ML, "answer", "input"),
    ),
    "answer": (
        Source("langfuse.trace.output", LF, form="output"),
        Source("confident.trace.output", CA, form="output"),
        Source("ai.observability.record_root.output", TR, form="output"),
        Source("output.value", OI, "request", "output"),
        Source("traceloop.entity.output", TL, "request", "output"),
        Source("gen_ai.task.output", TL, "request", "output"),
        Source("gen_ai.output.messages", GENAI, "request", "assistant message"),
        Source("langfuse.observation.output", LF, "request", "output"),
        Source("final_result", GENAI, "request", "output", seen="Pydantic AI; spans not seen"),
        Source("llm.output_messages", OI, "answer", "indexed assistant message"),
        Source("gen_ai.output.messages", GENAI, "answer", "assistant message"),
        Source("gen_ai.choice", GENAI, "answer", "event assistant message", seen=_UNTIL_1_36),
        Source("ai.response.text", VA, "answer"),
        Source("ai.result.text", VA, "answer"),
        Source("ai.response.object", VA, "answer"),
        Source("gen_ai.completion", TL, "answer", "legacy assistant message", seen="until 0.50"),
        Source("llm.choices", OI, "answer", "indexed text"),
        Source("langfuse.observation.output", LF, "answer", "output"),
        Source("mlflow.spanOutputs", ML, "answer", "output"),
        Source("output", ML, "answer", "output"),
    ),
    "contexts": (
        Source("reranker.output_documents", OI, "reranker", "indexed documents"),
        Source("retrieval.documents", OI, "retriever", "indexed documents"),
        Source("gen_ai.retrieval.documents", GENAI, "retriever", "documents"),
        Source("gen_ai.memory.records", GENAI, "retriever", "documents"),
        Source("traceloop.entity.output", TL, "retriever", "documents"),
        Source("gen_ai.task.output", TL, "retriever", "documents"),
        Source("db.query.result", TL, "retriever", "event documents"),
        Source("db.search.result", TL, "retriever", "event documents"),
        Source("langfuse.observation.output", LF, "retriever", "documents"),
        Source("confident.span.retrieval_context", CA, "retriever", "documents"),
        Source("ai.observability.retrieval.retrieved_contexts", TR, "retriever", "documents"),
        Source("output.value", OI, "retriever", "documents"),
    ),
    "expected": (
        Source("ragtide.expected", OURS, form="texts"),
        Source("confident.span.expected_output", CA, form="texts"),
        Source("confident.trace.llm_test_case.expected_output", CA, form="texts"),
        Source("langfuse.experiment.item.expected_output", LF, form="texts"),
        Source("ai.observability.record_root.ground_truth_output", TR, form="texts"),
        Source("metadata:expected_output", OI, "root", "json key"),
        Source("metadata:reference", OI, "root", "json key"),
        Source("metadata:ground_truth", OI, "root", "json key"),
    ),
    "model.served": (
        Source("gen_ai.response.model", GENAI, "answer"),
        Source("llm.response.model_name", OI, "answer", seen=_SINCE_AUGUST),
        Source("llm.response.model", TL, "answer"),
        Source("ai.response.model", VA, "answer"),
        Source("langfuse.observation.model.name", LF, "answer"),
        Source("llm.model_name", OI, "answer"),
    ),
    "model.requested": (
        Source("gen_ai.request.model", GENAI, "answer"),
        Source("llm.request.model_name", OI, "answer", seen=_SINCE_AUGUST),
        Source("ai.model.id", VA, "answer"),
        Source("llm.invocation_parameters:model", OI, "answer", "json key"),
    ),
    "model.provider": (
        Source("gen_ai.provider.name", GENAI, "answer"),
        Source("gen_ai.system", GENAI, "answer", seen=_UNTIL_1_36),
        Source("llm.provider", OI, "answer"),
        Source("llm.system", OI, "answer"),
        Source("ai.model.provider", VA, "answer"),
    ),
    "model.host": (Source("server.address", OTEL, "answer", with_="server.port"),),
    "model.prompt_version": (
        Source("gen_ai.prompt.version", GENAI, with_="gen_ai.prompt.name"),
        Source("llm.prompt_template.version", OI),
        Source("langfuse.observation.prompt.version", LF, with_="langfuse.observation.prompt.name"),
        Source("traceloop.prompt.version", TL, with_="traceloop.prompt.key"),
        Source("prompt.id", OI),
    ),
    "model.collection": (
        Source("gen_ai.data_source.id", GENAI),
        Source("gen_ai.memory.store.id", GENAI),
        Source("db.collection.name", OTEL),
        Source("qdrant.search.collection_name", TL),
        Source("db.milvus.search.collection_name", TL),
        Source("pinecone.query.namespace", TL),
    ),
    "tokens.input": (
        Source("gen_ai.usage.input_tokens", GENAI, "llm", "number"),
        Source("llm.token_count.prompt", OI, "llm", "number"),
        Source("langfuse.observation.usage_details:input", LF, "llm", "json key"),
        Source("gen_ai.usage.prompt_tokens", GENAI, "llm", "number", seen="until semantic conventions 1.26"),
    ),
    "tokens.output": (
        Source("gen_ai.usage.output_tokens", GENAI, "llm", "number"),
        Source("llm.token_count.completion", OI, "llm", "number"),
        Source("langfuse.observation.usage_details:output", LF, "llm", "json key"),
        Source("gen_ai.usage.completion_tokens", GENAI, "llm", "number", seen="until semantic conventions 1.26"),
    ),
    "tokens.cached": (
        Source("gen_ai.usage.cache_read.input_tokens", GENAI, "llm", "number"),
        Source("gen_ai.usage.cache_read_input_tokens", TL, "llm", "number"),
        Source("llm.token_count.prompt_details.cache_read", OI, "llm", "number"),
        Source("ai.usage.cachedInputTokens", VA, "llm", "number"),
    ),
    "cost_usd": (
        Source("langfuse.observation.cost_details:total", LF, "llm", "json key"),
        Source("gen_ai.usage.cost", TL, "llm", "number"),
        Source("llm.cost.total", OI, "llm", "number"),
    ),
    "latency.first_token_s": (
        Source("gen_ai.response.time_to_first_chunk", GENAI, "answer", "seconds"),
        Source("langfuse.observation.completion_start_time", LF, "answer", "time"),
        Source("ai.observability.time_to_first_token_ms", TR, "answer", "milliseconds"),
        Source("ai.response.msToFirstChunk", VA, "answer", "milliseconds"),
    ),
    "condition": (Source("ragtide.condition", OURS),),
    "task": (Source("ragtide.task", OURS),),
    "segments.version": (Source("service.version", OTEL, "resource"),),
    "segments.cluster": (Source("k8s.cluster.name", OTEL, "resource"),),
    "segments.region": (Source("cloud.region", OTEL, "resource"),),
    "segments.output_type": (Source("gen_ai.output.type", GENAI, "answer"),),
}

# Besides the sources of the question, the prompt of the answer's LLM call: `otel.contexts_from_prompt` reads it.
SYSTEM_PROMPTS: tuple[Source, ...] = (
    Source("llm.input_messages", OI, "answer", "indexed system message"),
    Source("gen_ai.input.messages", GENAI, "answer", "system message"),
    Source("gen_ai.system_instructions", GENAI, "answer", "system instructions"),
    Source("gen_ai.system.message", GENAI, "answer", "event system message", seen=_UNTIL_1_36),
    Source("ai.prompt.messages", VA, "answer", "system message"),
    Source("gen_ai.prompt", TL, "answer", "legacy system message", seen="until 0.50"),
    Source("langfuse.observation.input", LF, "answer", "system message"),
    Source("mlflow.spanInputs", ML, "answer", "system message"),
    Source("input", ML, "answer", "system message"),
)

# The kind of a span: the first attribute that has one of the values.
KINDS: tuple[tuple[str, Convention, Mapping[str, Kind]], ...] = (
    (
        "openinference.span.kind",
        OI,
        {
            "LLM": "llm",
            "RETRIEVER": "retriever",
            "RERANKER": "reranker",
            "EMBEDDING": "embedding",
            "AGENT": "agent",
            "CHAIN": "chain",
            "TOOL": "tool",
            "GUARDRAIL": "guardrail",
            "PROMPT": "prompt",
            "EVALUATOR": "evaluator",
        },
    ),
    (
        "langfuse.observation.type",
        LF,
        {
            "generation": "llm",
            "retriever": "retriever",
            "embedding": "embedding",
            "agent": "agent",
            "chain": "chain",
            "tool": "tool",
            "guardrail": "guardrail",
            "evaluator": "evaluator",
        },
    ),
    (
        "confident.span.type",
        CA,
        {"llm": "llm", "retriever": "retriever", "agent": "agent", "tool": "tool"},
    ),
    (
        "gen_ai.operation.name",
        GENAI,
        {
            "chat": "llm",
            "text_completion": "llm",
            "generate_content": "llm",
            "llm_request": "llm",
            "retrieval": "retriever",
            "search_memory": "retriever",
            "vector_db_retrieve": "retriever",
            "rerank": "reranker",
            "embeddings": "embedding",
            "execute_tool": "tool",
        },
    ),
    ("llm.request.type", TL, {"completion": "llm", "chat": "llm", "rerank": "reranker", "embedding": "embedding"}),
    # Before the agent of gen_ai.operation.name, which Traceloop writes for every workflow.
    ("traceloop.span.kind", TL, {"workflow": "chain", "task": "chain", "agent": "agent", "tool": "tool"}),
    (
        "gen_ai.operation.name",
        GENAI,
        {
            "invoke_agent": "agent",
            "agent_step": "agent",
            "create_agent": "agent",
            "invoke_workflow": "chain",
            "plan": "chain",
            "execute_task": "chain",
            "fetch_response": "other",
        },
    ),
)

# Traceloop's instrumentation of LlamaIndex calls everything a task: the attribute that tells more, and how it ends.
TASKS: tuple[tuple[str, str, Kind], ...] = (
    ("traceloop.entity.name", "Retriever.task", "retriever"),
    ("gen_ai.output.messages", "", "llm"),
    ("gen_ai.input.messages", "", "llm"),
)
# Without any of these: the kind by the first of the prefixes that an attribute has.
KINDS_BY_PREFIX: tuple[tuple[str, Kind], ...] = (
    ("gen_ai.tool.", "tool"),
    ("gen_ai.retrieval.", "retriever"),
    ("gen_ai.embeddings.", "embedding"),
    ("gen_ai.input.messages", "llm"),
    ("gen_ai.output.messages", "llm"),
    ("gen_ai.request.model", "llm"),
    ("retrieval.documents.", "retriever"),
    ("ai.prompt", "llm"),
)
RESULT_EVENTS = ("db.query.result", "db.search.result")  # a span of a vector database with one is a retriever

# Content that is kept elsewhere and named here: it is never fetched.
REFERENCES: Mapping[str, str] = {
    "gen_ai.input.messages_ref": "question",
    "gen_ai.output.messages_ref": "answer",
}

DETAILS_EVENT = "gen_ai.client.inference.operation.details"  # a log record with the content of its span
REDACTED = "__REDACTED__"

PROVIDERS: Mapping[str, str] = {
    **dict.fromkeys(("az.ai.openai", "az.ai.inference", "azure.ai.openai", "azure.ai.inference"), "azure"),
    **dict.fromkeys(("aws.bedrock", "bedrock"), "aws"),
    **dict.fromkeys(("vertexai", "vertex_ai", "gcp.gemini", "gcp.vertex_ai", "gcp.gen_ai"), "google"),
    **dict.fromkeys(("x_ai", "xai"), "xai"),
    **dict.fromkeys(("mistralai", "mistral_ai"), "mistral"),
}
