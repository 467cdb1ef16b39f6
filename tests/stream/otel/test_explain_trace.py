"""`ragtide explain-trace` names each field's span and attribute, each gap with what to do, and each fault."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.stream.cli import main
from ragtide.stream.ingest.otel.otlp import LARGEST_BATCH
from tests.stream.otel.scene import ANSWER, HOURS, QUESTION, RECORDED, TRACE

SPAN = "00f067aa0ba902b7"
SPANS = str(RECORDED / "openinference_langchain.json")


def run(*args: str, input: bytes = b"") -> Result:
    return CliRunner().invoke(main, ["explain-trace", *args], input=input, env={"RAGTIDE_CONFIG": None})


def batch(*spans: dict[str, Any]) -> bytes:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "museum"}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}).encode()


def a_span(trace_id: str = TRACE, **attributes: str) -> dict[str, Any]:
    pairs = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
    return {
        "traceId": trace_id,
        "spanId": SPAN,
        "name": "ask",
        "startTimeUnixNano": "1790000000000000000",
        "endTimeUnixNano": "1790000001500000000",
        "attributes": pairs,
    }


CHAIN = a_span(openinference__span__kind="CHAIN", input__value="What\nnow?", output__value=ANSWER)


def test_each_field_has_its_span_and_attribute() -> None:
    done = run("-", input=batch(CHAIN))
    assert done.exit_code == 0, done.output
    assert done.output.splitlines() == [
        f"trace {TRACE}, 1 span",
        f"recorded      span_id: {SPAN}  [span ask]",
        "recorded      time: 2026-09-21T14:13:21.500Z  [span ask]",
        "recorded      app: museum  [service.name of span ask; OpenTelemetry]",
        "recorded      question: What\\nnow?  [input.value of span ask; OpenInference]",
        f"recorded      answer: {ANSWER}  [output.value of span ask; OpenInference]",
        "recorded      latency.total_s: 1.5  [span ask]",
        "not recorded  environment: no span has an attribute for it; "
        "set deployment.environment.name in OTEL_RESOURCE_ATTRIBUTES",
        "not recorded  session_id: no span has an attribute for it; "
        "set the attribute session.id, or gen_ai.conversation.id, on a span of the application",
        "not recorded  user_id: no span has an attribute for it; "
        "set the attribute user.id on a span of the application",
        "not recorded  expected: no span has an attribute for it; set the attribute ragtide.expected, or send a label",
        "not recorded  model.served: no span has an attribute for it",
        "not recorded  model.requested: no span has an attribute for it",
        "not recorded  model.provider: no span has an attribute for it",
        "not recorded  model.host: no span has an attribute for it",
        "not recorded  model.prompt_version: no span has an attribute for it",
        "not recorded  model.collection: no span has an attribute for it",
        "not recorded  latency.first_token_s: no span has an attribute for it",
        "not recorded  contexts: no span of this kind came; "
        "instrument the retriever, or give its span the attribute openinference.span.kind=RETRIEVER",
        "not recorded  tokens.input: no span of this kind came",
        "not recorded  tokens.output: no span of this kind came",
        "not recorded  tokens.cached: no span of this kind came",
        "not recorded  cost_usd: no span of this kind came",
        "not recorded  latency.retrieval_s: no span of this kind came",
        "not recorded  latency.generation_s: no span of this kind came",
        "1 span: 1 trace accepted, 0 refused",
    ]


def test_as_json() -> None:
    done = run(SPANS, "--json")
    assert done.exit_code == 0
    told = json.loads(done.output)
    assert (told["spans"], told["refused"], told["unmapped"], told["without_application"]) == (9, {}, {}, [])
    [trace] = told["traces"]
    assert trace["trace"]["question"] == QUESTION
    fields = {one["field"]: one for one in trace["fields"]}
    assert fields["contexts"]["value"][0]["text"] == HOURS
    assert fields["contexts"]["span_name"] == "Shelf"
    assert fields["tokens.input"] == {
        "field": "tokens.input",
        "value": 40,
        "span_id": fields["tokens.output"]["span_id"],
        "span_name": "Model",
        "attribute": "llm.token_count.prompt",
        "convention": "OpenInference",
    }
    gaps = {one["field"]: one["reason"] for one in trace["not_recorded"]}
    assert gaps["session_id"] == gaps["cost_usd"] == "not_sent"
    assert trace["faults"] == []


def test_protobuf_and_gzip_are_read_as_json_is() -> None:
    expected = json.loads(run(SPANS, "--json").output)
    proto = (RECORDED / "openinference_langchain.binpb").read_bytes()
    assert json.loads(run("-", "--json", input=proto).output) == expected
    assert json.loads(run("-", "--json", "--encoding", "otlp_proto", input=gzip.compress(proto)).output) == expected


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_message_may_end_in_the_line_break_of_the_console_consumer(pack: Callable[[bytes], bytes]) -> None:
    proto = pack((RECORDED / "openinference_langchain.binpb").read_bytes())
    expected = run("-", input=proto)
    for encoding in ("otlp", "otlp_proto"):
        done = run("-", "--encoding", encoding, input=proto + b"\n")
        assert (done.exit_code, done.output) == (0, expected.output)
    assert run("-", input=b"\n\x00\n").exit_code == 0


def test_log_records_complete_the_spans() -> None:
    name = str(RECORDED / "genai_langchain_events")
    without = run(f"{name}.json")
    assert without.exit_code == 1
    assert "refused       one of question and answer must be recorded" in without.output
    done = run(f"{name}.json", "--logs", f"{name}.logs.json")
    assert done.exit_code == 0
    assert f"recorded      answer: {ANSWER}  [gen_ai.output.messages of span chat fake-1; OpenTelemetry GenAI]" in (
        done.output.splitlines()
    )


def test_a_batch_per_line_and_one_trace_of_several() -> None:
    other = "1" * 32
    lines = batch(CHAIN) + b"\n\n" + batch({**CHAIN, "traceId": other}) + b"\n"
    assert run("-", input=lines).output.splitlines()[-1] == "2 spans: 2 traces accepted, 0 refused"
    one = run("-", "--json", "--trace", other, input=lines)
    assert [trace["trace"]["trace_id"] for trace in json.loads(one.output)["traces"]] == [other]
    unknown = run("-", "--trace", TRACE[:-1] + "d", input=lines)
    assert unknown.exit_code == 2
    assert f"did you mean {TRACE}?" in unknown.output


def test_lines_that_are_larger_than_a_batch_together_are_read_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    padding = b" " * (LARGEST_BATCH // 2)
    file.write_bytes(batch(CHAIN) + padding + b"\n" + batch({**CHAIN, "traceId": "1" * 32}) + padding + b"\n")
    done = run(str(file))
    assert done.exit_code == 0
    assert done.output.splitlines()[-1] == "2 spans: 2 traces accepted, 0 refused"


def test_log_records_of_no_span_are_notes(tmp_path: Path) -> None:
    other = {"traceId": "1" * 32, "spanId": SPAN}
    records = [{"body": {"stringValue": "started"}}, {"traceId": TRACE, "spanId": "1" * 16}, other, other]
    logs = tmp_path / "logs.json"
    logs.write_text(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}))
    done = run("-", "--logs", str(logs), input=batch(CHAIN))
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-2:] == [
        "counted       noted: 3 log_span_missing, 1 no_span",
        "1 span: 1 trace accepted, 0 refused",
    ]
    counts = json.loads(run("-", "--json", "--logs", str(logs), input=batch(CHAIN)).output)
    assert (counts["counts"], counts["refused"]) == ({"log_span_missing": 3, "no_span": 1}, {})


def test_texts_of_the_prompt_are_marked_and_the_setting_is_named(tmp_path: Path) -> None:
    spans = str(RECORDED / "genai_langchain.json")
    [line] = [one for one in run(spans).output.splitlines() if one.startswith("not recorded  contexts.text")]
    assert "or set otel.contexts_from_prompt, if the prompt of the LLM call holds them" in line
    file = tmp_path / "ragtide.toml"
    file.write_text("[otel]\ncontexts_from_prompt = 'delimited'\ncontext_start = '^Answer from: |\\n'\n")
    done = run(spans, "--config", str(file))
    assert (
        "recorded      contexts: 2 chunks  [gen_ai.input.messages of span chat fake-1; OpenTelemetry GenAI; "
        "by otel.contexts_from_prompt]"
    ) in done.output.splitlines()
    assert "counted       noted: 1 contexts_from_prompt" in done.output.splitlines()
    assert "contexts.text" not in done.output
    [trace] = json.loads(run(spans, "--json", "--config", str(file)).output)["traces"]
    [contexts] = [one for one in trace["fields"] if one["field"] == "contexts"]
    assert contexts["setting"] == "otel.contexts_from_prompt"
    assert [one["source"] for one in contexts["value"]] == ["prompt", "prompt"]


def test_markers_that_are_not_in_the_prompt_are_said_to_be_so(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text("[otel]\ncontexts_from_prompt = 'delimited'\ncontext_template = '<doc>{context}</doc>'\n")
    done = run(str(RECORDED / "genai_langchain.json"), "--config", str(file))
    assert done.exit_code == 0, done.output
    [line] = [one for one in done.output.splitlines() if one.startswith("not recorded  contexts.text")]
    assert line == (
        "not recorded  contexts.text: it is there without a text, and otel.contexts_from_prompt finds none in the "
        "prompt (the markers are not in it); compare otel.context_start, .context_end and .context_template with the "
        "prompt of the LLM call"
    )


@pytest.mark.parametrize("form", ["a list", "flattened"])
def test_documents_that_are_left_out_are_counted(form: str) -> None:
    kind = {"openinference__span__kind": "RETRIEVER", "input__value": "q"}
    flattened = {f"retrieval__documents__{number}__document__content": f"c{number}" for number in range(10_002)}
    listed = {"output__value": json.dumps(list(flattened.values()))}
    done = run("-", input=batch(a_span(**kind, **(listed if form == "a list" else flattened))))
    assert "counted       noted: 2 documents_left_out" in done.output.splitlines()
    assert "recorded      contexts: 10,000 chunks" in done.output


def test_a_trace_of_evaluators_only_is_left_out_and_the_status_is_0() -> None:
    done = run("-", input=batch(a_span(openinference__span__kind="EVALUATOR", output__value="0.7")))
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        f"left out      trace {TRACE}: it has only spans of evaluators, and they are left out",
        "counted       noted: 1 judge_span, 1 only_judges",
        "1 span: 0 traces accepted, 0 refused",
    ]


def test_spans_that_cannot_be_read_are_counted_and_the_status_is_1() -> None:
    broken = {**CHAIN, "traceId": "xyz"}
    strange = a_span("2" * 32, http__route="/ask", gen_ai__new="x")
    done = run("-", input=batch(CHAIN, broken, strange))
    assert done.exit_code == 1
    assert done.output.splitlines()[-5:] == [
        f"refused       trace {'2' * 32}: no span has a kind that is known (an LLM call, a retrieval, a chain, …)",
        "counted       left out, since they cannot be read: 1 bad_trace_id",
        "counted       noted: 1 no_application",
        "unmapped      attributes of known conventions that the mapping does not have: 1 gen_ai",
        "2 spans: 1 trace accepted, 0 refused",
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[]", "found a JSON array, as zipkin_json is"),
        (b'{"a": 1}', "has no resourceSpans"),
        (b'{"a": 1', "malformed JSON, or a part of a batch"),
        (b'{"resourceSpans": []}\n{"resource', "line 2: malformed JSON"),
        (b"\x0a\xff\xff\xff", "no OTLP batch in protobuf"),
    ],
)
def test_a_file_that_is_no_batch_is_an_error_that_says_what_to_do(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "spans"
    file.write_bytes(content)
    done = run(str(file))
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


def test_texts_cannot_control_the_terminal() -> None:
    done = run("-", input=batch(a_span(openinference__span__kind="CHAIN", input__value="\x1b[31m red")))
    assert "\x1b" not in done.output
    assert "\\x1b[31m red" in done.output
