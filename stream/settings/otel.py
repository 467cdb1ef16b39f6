"""Settings of OpenTelemetry spans and of the stage that assembles traces from them."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from ragtide.drift.export_settings import ExportSettings
from ragtide.stream.settings.prompt_markers import compile_markers

Encoding = Literal["otlp", "otlp_proto", "otlp_json"]
ContextsFromPrompt = Literal["off", "delimited", "whole"]


class OtelSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Topics of spans, and when the spans of a trace are complete."""

    topics: tuple[str, ...] = Field(
        default=("otlp_spans",),
        min_length=1,
        description="Topics of OpenTelemetry spans, as the Collector writes them.",
    )
    log_topics: tuple[str, ...] = Field(
        default=(),
        description="Topics of OpenTelemetry log records, which may hold the texts of spans, e.g. otlp_logs.",
    )
    encodings: dict[str, Encoding] = Field(
        default={},
        description="Encoding by topic of spans or logs: otlp_proto, otlp_json, or otlp, which tells them apart. "
        "Topics without one use otlp.",
    )
    traces_topic: str = Field(
        default="rag.traces",
        description="Topic that receives the assembled traces. kafka.topics must read it as canonical traces.",
    )
    quiet_s: float = Field(
        default=30.0,
        gt=0,
        description="Seconds without a new span after which a trace whose root ended is complete. 5 suits a Collector "
        "that samples whole traces.",
    )
    max_open_s: float = Field(
        default=900.0, gt=0, description="Seconds after its first span at which a trace is complete in any case."
    )
    late_s: float = Field(
        default=300.0,
        gt=0,
        description="Seconds after which a complete trace is forgotten. A span that comes within them sends the trace "
        "again. The Collector retries for 300 s. A worker that starts reads the spans of so long again.",
    )
    max_trace_spans: int = Field(
        default=10_000,
        ge=100,
        description="Most spans of a trace. Beyond them, spans of roots, retrievers and LLM calls are kept first.",
    )
    max_trace_bytes: int = Field(
        default=16 << 20, ge=1 << 16, description="Most bytes of spans of a trace; beyond them as for max_trace_spans."
    )
    memory_bytes: int = Field(
        default=256 << 20, ge=1 << 20, description="Bytes of spans kept in memory. Beyond them, spans wait on disk."
    )
    spill_directory: str = Field(
        default="",
        description="Directory on a disk for spans beyond memory_bytes. If empty, the system's for temporary files.",
    )
    contexts_from_prompt: ContextsFromPrompt = Field(
        default="off",
        description="Where the texts of chunks are from if the retrieval's span has none: off, nowhere; delimited, the "
        "parts of the prompt between markers; whole, the prompt without the question, as one chunk.",
    )
    context_start: str = Field(
        default="",
        description="Regular expression (RE2) of the text before each chunk in the prompt, e.g. <doc[^>]*>. With "
        "contexts_from_prompt = delimited.",
    )
    context_end: str = Field(
        default="",
        description="Regular expression (RE2) of the text after each chunk, e.g. </doc>. If empty, a chunk ends at the "
        "next match of context_start, or with the message.",
    )
    context_template: str = Field(
        default="",
        description="In place of both: the text before and after each chunk as it is, with {context} for the chunk, "
        "e.g. <doc>{context}</doc>.",
    )
    export: ExportSettings = Field(default_factory=ExportSettings)

    @model_validator(mode="after")
    def _check_topics(self) -> Self:
        read = (*self.topics, *self.log_topics)
        if twice := sorted({topic for topic in read if read.count(topic) > 1}):
            raise ValueError(f"otel.topics and otel.log_topics name {', '.join(twice)} twice")
        if idle := [topic for topic in self.encodings if topic not in read]:
            raise ValueError(
                f"otel.encodings names {', '.join(idle)}, which neither otel.topics nor otel.log_topics does"
            )
        return self

    @model_validator(mode="after")
    def _check_markers(self) -> Self:
        is_marked = bool(self.context_start or self.context_end or self.context_template)
        if self.contexts_from_prompt == "delimited":
            compile_markers(self.context_start, self.context_end, self.context_template)
        elif is_marked:
            raise ValueError(
                "otel.context_start, .context_end and .context_template need otel.contexts_from_prompt = delimited, "
                f"and it is {self.contexts_from_prompt}"
            )
        return self

    def encoding(self, topic: str) -> Encoding:
        """The encoding of a topic of spans or logs."""
        return self.encodings.get(topic, "otlp")
