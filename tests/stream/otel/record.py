"""Run a small pipeline with a fake model under real instrumentation, and record or export its spans.

`record.py CASE` writes them as OTLP in protobuf and in JSON; recorded/README.md says how to run it, and which versions
made the files that are there. `record.py CASE URL` exports them to a Collector, under the name of the case as service.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "recorded"
QUESTION = "When does the museum open?"
ANSWER = "It opens at nine."
HOURS = "The museum opens at nine."
PRICES = "Tickets cost eight euros."


Ask = Callable[[str], None]


def langchain() -> Ask:
    """A chain of retriever, prompt, model and parser."""
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough

    class Shelf(BaseRetriever):  # type: ignore[misc]  # its base has no types here
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            return [
                Document(id="hours-1", page_content=HOURS, metadata={"source": "hours.md"}),
                Document(id="prices-1", page_content=PRICES, metadata={"source": "prices.md"}),
            ]

    class Model(GenericFakeChatModel):  # type: ignore[misc]  # its base has no types here
        model_name: str = "fake-1"

        @property
        def _identifying_params(self) -> dict[str, Any]:
            return {"model_name": self.model_name}

    usage = {"input_tokens": 40, "output_tokens": 6, "total_tokens": 46}
    answer = AIMessage(ANSWER, usage_metadata=usage, response_metadata={"model_name": "fake-1-0613"})
    model = Model(messages=iter([answer]))
    prompt = ChatPromptTemplate.from_messages([("system", "Answer from: {context}"), ("user", "{question}")])
    texts = Shelf() | (lambda found: "\n".join(one.page_content for one in found))
    chain = {"context": texts, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    metadata = {"ls_model_name": "fake-1", "ls_provider": "fake"}
    return lambda question: chain.invoke(question, config={"metadata": metadata})


def llama_index() -> Ask:
    """A query engine over two documents."""
    from llama_index.core import Document, Settings, VectorStoreIndex
    from llama_index.core.embeddings import MockEmbedding
    from llama_index.core.llms.mock import MockLLM

    Settings.llm, Settings.embed_model = MockLLM(max_tokens=8), MockEmbedding(8)
    index = VectorStoreIndex.from_documents([Document(text=HOURS, id_="hours"), Document(text=PRICES, id_="prices")])
    engine = index.as_query_engine(similarity_top_k=2)
    return lambda question: engine.query(question)


def langfuse() -> Ask:
    """Observations made by hand with the SDK, as its documentation shows."""
    return _observe


def _observe(question: str) -> None:
    documents = [{"id": "hours-1", "text": HOURS, "score": 0.9}, {"id": "prices-1", "text": PRICES, "score": 0.4}]
    with CLIENT.start_as_current_observation(name="ask", as_type="chain", input={"question": question}) as root:
        with CLIENT.start_as_current_observation(name="search", as_type="retriever", input=question) as search:
            search.update(output=documents)
        messages = [{"role": "system", "content": f"Answer from: {HOURS}"}, {"role": "user", "content": question}]
        with CLIENT.start_as_current_observation(
            name="answer", as_type="generation", model="fake-1", input=messages
        ) as answer:
            answer.update(output=ANSWER, usage_details={"input": 40, "output": 6}, cost_details={"total": 0.002})
        root.update(output={"answer": ANSWER})


def _langfuse(provider: Any) -> None:
    global CLIENT
    from langfuse import Langfuse

    CLIENT = Langfuse(tracer_provider=provider, public_key="pk-lf-x", secret_key="sk-lf-x", host="http://127.0.0.1:9")


def _traceloop_llama_index(provider: Any) -> None:
    from opentelemetry.instrumentation.llamaindex import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def _openinference_langchain(provider: Any) -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)


def _openinference_hidden(provider: Any) -> None:
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(
        tracer_provider=provider, config=TraceConfig(hide_inputs=True, hide_outputs=True)
    )


def _openinference_llama_index(provider: Any) -> None:
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)


def _traceloop_langchain(provider: Any) -> None:
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    LangchainInstrumentor().instrument(tracer_provider=provider)


def _genai_langchain(provider: Any) -> None:
    from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider, logger_provider=LOGGERS)


EXPORTED: list[Any] = []
LOGGED: list[Any] = []
LOGGERS: Any = None
CLIENT: Any = None
_GENAI = {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CASES: dict[str, tuple[Callable[[Any], None], Callable[[], Ask], dict[str, str]]] = {
    "openinference_langchain": (_openinference_langchain, langchain, {}),
    "openinference_langchain_hidden": (_openinference_hidden, langchain, {}),
    "openinference_llama_index": (_openinference_llama_index, llama_index, {}),
    "langfuse_sdk": (_langfuse, langfuse, {}),
    "traceloop_llama_index": (_traceloop_llama_index, llama_index, {}),
    "traceloop_langchain": (_traceloop_langchain, langchain, {}),
    "genai_langchain": (_genai_langchain, langchain, {**_GENAI, _CAPTURE: "SPAN_ONLY"}),
    "genai_langchain_events": (
        _genai_langchain,
        langchain,
        {**_GENAI, _CAPTURE: "EVENT_ONLY", "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT": "true"},
    ),
    "genai_langchain_no_content": (_genai_langchain, langchain, _GENAI),
}


def main(name: str, url: str = "") -> None:
    """Run one case; a process runs only one, since instrumentation patches modules."""
    global LOGGERS
    instrument, prepare, variables = CASES[name]
    os.environ.update(variables)
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    service = {"service.name": name if url else "museum", "service.version": "1.4"}
    resource = Resource({**service, "deployment.environment.name": "test"})
    provider, LOGGERS = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    if url:
        _export_to(url, provider, LOGGERS)
    else:
        _keep(provider, LOGGERS)
    ask = prepare()
    instrument(provider)
    ask(QUESTION)
    provider.shutdown()
    LOGGERS.shutdown()
    if not url:
        _write(name)


def _export_to(url: str, provider: Any, loggers: Any) -> None:
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    loggers.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs")))


def _keep(provider: Any, loggers: Any) -> None:
    from opentelemetry.sdk._logs.export import (
        LogRecordExporter,
        LogRecordExportResult,
        SimpleLogRecordProcessor,
    )
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

    class Spans(SpanExporter):  # type: ignore[misc]  # its base has no types here
        def export(self, spans: Sequence[Any]) -> Any:
            EXPORTED.extend(spans)
            return SpanExportResult.SUCCESS

    class Logs(LogRecordExporter):  # type: ignore[misc]  # its base has no types here
        def export(self, batch: Sequence[Any]) -> Any:
            LOGGED.extend(batch)
            return LogRecordExportResult.SUCCESS

        def shutdown(self) -> None:
            """Nothing to do."""

        def force_flush(self, timeout_millis: int = 0) -> bool:
            return True

    provider.add_span_processor(SimpleSpanProcessor(Spans()))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(Logs()))


def _write(name: str) -> None:
    from opentelemetry.exporter.otlp.json.common._log_encoder import encode_logs as logs_to_json
    from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans as spans_to_json
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    (HERE / f"{name}.binpb").write_bytes(encode_spans(EXPORTED).SerializeToString())
    (HERE / f"{name}.json").write_text(_indented(spans_to_json(EXPORTED)))
    if LOGGED:
        (HERE / f"{name}.logs.binpb").write_bytes(encode_logs(LOGGED).SerializeToString())
        (HERE / f"{name}.logs.json").write_text(_indented(logs_to_json(LOGGED)))


def _indented(message: Any) -> str:
    encoded = message.to_json() if hasattr(message, "to_json") else json.dumps(message.to_dict())
    return json.dumps(json.loads(encoded), indent=1) + "\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
