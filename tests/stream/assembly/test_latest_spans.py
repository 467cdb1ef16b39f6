"""`ragtide check` on topics of spans."""

import asyncio

import pytest

from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.latest_spans import report_spans
from ragtide.stream.latest_traces import latest_records
from ragtide.stream.settings.loader import Settings, load_values
from tests.stream.assembly.otlp import batch, recorded_spans
from tests.stream.assembly.stage_process import PARTITIONS, topics
from tests.stream.core.traffic import Broker, send
from tests.stream.otel.scene import RECORDED

SETTINGS = load_values({}).settings
WHOLE = batch(recorded_spans("openinference_langchain", 1))
ID = (1).to_bytes(16).hex().encode()


def said(*records: tuple[bytes | None, bytes | None], settings: Settings = SETTINGS) -> list[tuple[bool | None, str]]:
    found = [StoredRecord("otlp_spans", 0, offset, 1, key, value) for offset, (key, value) in enumerate(records)]
    return [(ok, message) for _, ok, message in report_spans(settings, {"otlp_spans": found})]


def test_encoding_keys_instrumentation_and_coverage_are_named() -> None:
    [(ok, messages), (enough, traces)] = said((ID, WHOLE), (ID, WHOLE))
    assert (ok, enough) == (True, True)
    assert messages == "all of the latest 2 messages can be read as otlp_proto, every key is the trace id"
    assert traces.startswith(
        "18 spans by openinference.instrumentation.langchain 0.1.80; 1 traces record: question 100%"
    )


def test_missing_texts_are_named_with_what_to_do() -> None:
    json = (RECORDED / "genai_langchain_no_content.json").read_bytes()
    [(ok, messages), (enough, traces)] = said((None, json), (b"other", WHOLE))
    assert (ok, enough) == (True, True)
    assert "as otlp_json and otlp_proto, no key is the trace id" in messages
    assert "question 50%" in traces
    [_, (enough, traces)] = said((None, json))
    assert enough is None
    assert "`ragtide explain-trace` says what to switch on" in traces


def test_documents_without_texts_are_named_with_the_setting_that_may_have_them() -> None:
    json = (RECORDED / "genai_langchain.json").read_bytes()
    [_, (enough, traces)] = said((None, json), (b"other", WHOLE))
    assert enough is True, "one application records texts"
    assert traces.endswith(
        ". 1 have documents without text: otel.contexts_from_prompt may take the texts from the prompt"
    )
    otel = {"contexts_from_prompt": "delimited", "context_start": "^Answer from: |\n"}
    [_, (enough, traces)] = said((None, json), settings=load_values({"otel": otel}).settings)
    assert enough is True
    assert traces.endswith("contexts.text 100%, model 100%, tokens 100%, cost_usd 0%")
    otel["context_start"] = "nowhere"
    [_, (enough, traces)] = said((None, json), settings=load_values({"otel": otel}).settings)
    assert enough is None
    assert traces.endswith("1 have documents without text: otel.contexts_from_prompt finds none in the prompt")


def test_spans_whose_roots_are_elsewhere_are_said_to_be() -> None:
    inner = [
        one
        for one in recorded_spans("openinference_langchain", 1)
        if one.resource_spans[0].scope_spans[0].spans[0].parent_span_id
    ]
    [_, (enough, traces)] = said((ID, batch(inner)))
    assert enough is None
    assert traces == f"no span without a parent in {len(inner)} spans: the roots of their traces are in other messages"


def test_foreign_messages_are_a_fault_and_a_few_bad_ones_are_to_look_at() -> None:
    [(ok, message)] = said((None, b"neither"), (None, None))
    assert ok is False
    assert message.startswith(
        "2 of the latest 2 messages would be dead letters. Example: otlp_spans/0 offset 0: not_otlp"
    )
    [(ok, _), _] = said((ID, WHOLE), (ID, WHOLE), (None, b"neither"))
    assert ok is None
    assert said() == [(None, "no message yet")]


@pytest.mark.kafka
def test_the_latest_messages_of_a_topic_are_read(kafka: Broker) -> None:
    prefix = topics(kafka)
    send(kafka, f"{prefix}.otlp", [(ID, WHOLE)] * 5)
    settings = load_values(
        {"kafka": {"bootstrap_servers": kafka.bootstrap}, "otel": {"topics": [f"{prefix}.otlp"]}}
    ).settings
    latest = asyncio.run(latest_records(settings, {f"{prefix}.otlp": PARTITIONS}, 1_000))
    [(_, ok, message), _] = report_spans(settings, latest)
    assert (ok, message[:30]) == (True, "all of the latest 5 messages c")
