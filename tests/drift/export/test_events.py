"""A score as an event: worked by hand, and read by the reference classes of OTLP."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragtide.drift.export.events import EventWriter, ScoredRow, event_id, subject_of, wanted_metrics
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.otlp_http import Signal
from ragtide.stream.ingest.otel import decode_spans, map_spans
from tests.drift.export.scene import REGISTRY, attributes_of, records_of

TIME = datetime(2026, 11, 28, 12, 0, 0, 250_000, tzinfo=UTC)
TIME_NS = "1795867200250000000"
TRACE = "0af7651916cd43dd8448eb211c80319c"
EVIDENCE = json.dumps(
    [
        {"field": "answer", "start": 12, "end": 57, "kind": "unsupported", "score": 0.12},
        {"field": "contexts", "start": 0, "end": 4, "chunk_id": "hr/jane-doe.md", "kind": None, "score": None},
    ]
)
ROW = ScoredRow(
    "museum", "prod", "groundedness", TIME, TRACE, 7, {"groundedness": 0.25, "supported_sentences": 2.0}, EVIDENCE,
    ["short_answer"], "f1", 1, True, "00f067aa0ba902b7",
)  # fmt: skip


def writer(signal: Signal = "logs", patterns: tuple[str, ...] = (), *, explanations: bool = False) -> EventWriter:
    return EventWriter(REGISTRY, patterns, signal, "1.0", explanations=explanations)


def only_record(row: ScoredRow, written_by: EventWriter) -> dict[str, Any]:
    [record] = records_of(json.loads(written_by.encode([row])))
    return record


def with_base64_ids(value: Any) -> Any:
    """OTLP writes ids in hex, the plain mapping of protobuf in base64."""
    if isinstance(value, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            key: base64.b64encode(bytes.fromhex(one)).decode() if key in ids else with_base64_ids(one)
            for key, one in value.items()
        }
    return [with_base64_ids(one) for one in value] if isinstance(value, list) else value


def test_the_record_of_a_score() -> None:
    assert only_record(ROW, writer()) == {
        "timeUnixNano": TIME_NS,
        "observedTimeUnixNano": TIME_NS,
        "severityNumber": 9,
        "severityText": "INFO",
        "eventName": "gen_ai.evaluation.result",
        "traceId": TRACE,
        "spanId": "00f067aa0ba902b7",
        "attributes": {
            "gen_ai.evaluation.name": "groundedness.groundedness",
            "gen_ai.evaluation.score.value": 0.25,
            "gen_ai.evaluation.score.label": "fail",
            "ragtide.app": "museum",
            "ragtide.environment": "prod",
            "ragtide.evaluator.fingerprint": "f1",
            "ragtide.event.version": "00000000000000000000000000000007",
            "event.name": "gen_ai.evaluation.result",
            "ragtide.event.id": event_id(ROW, "groundedness.groundedness"),
        },
    }


def test_the_reference_classes_read_every_field_of_a_batch_of_logs() -> None:
    read = ExportLogsServiceRequest()
    json_format.ParseDict(with_base64_ids(json.loads(writer().encode([ROW]))), read)
    [resource] = read.resource_logs
    assert {pair.key: pair.value.string_value for pair in resource.resource.attributes} == {
        "service.name": "ragtide", "service.version": "1.0",
    }  # fmt: skip
    [record] = resource.scope_logs[0].log_records
    assert (record.trace_id.hex(), record.span_id.hex()) == (TRACE, "00f067aa0ba902b7")
    assert (record.event_name, record.time_unix_nano) == ("gen_ai.evaluation.result", int(TIME_NS))


def test_as_a_span_it_is_below_the_one_that_was_evaluated_and_no_application_of_its_own() -> None:
    body = writer("spans").encode([ROW])
    read = ExportTraceServiceRequest()
    json_format.ParseDict(with_base64_ids(json.loads(body)), read)
    [span] = read.resource_spans[0].scope_spans[0].spans
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.name) == (
        TRACE, "00f067aa0ba902b7", "evaluation groundedness",
    )  # fmt: skip
    assert span.start_time_unix_nano == span.end_time_unix_nano == int(TIME_NS)
    [event] = span.events
    values = attributes_of(json_format.MessageToDict(event))
    assert event.name == "gen_ai.evaluation.result"
    assert values["gen_ai.evaluation.name"] == "groundedness.groundedness"
    assert values["gen_ai.evaluation.score.value"] == 0.25
    # sent back to ragtide by a Collector, it is not evaluated
    mapped = map_spans(decode_spans(body, "otlp_json").spans)
    assert (mapped.traces, mapped.counts["judge_span"]) == ([], 1)


@pytest.mark.parametrize(("over", "label"), [(0.0, "pass"), (-0.001, "fail"), (0.2, "pass")])
def test_the_label_is_by_the_threshold_of_the_metric(over: float, label: str) -> None:
    [metric] = [one for one in REGISTRY["groundedness"].metrics if one.primary]
    assert metric.threshold is not None
    moved = ROW._replace(metrics={"groundedness": metric.threshold + over})
    assert only_record(moved, writer())["attributes"]["gen_ai.evaluation.score.label"] == label


def test_lower_is_better_of_some_metrics_and_some_have_no_threshold() -> None:
    labels = {}
    for id, evaluator in REGISTRY.items():
        for metric in evaluator.metrics:
            if metric.per or not metric.bounded:
                continue
            row = ROW._replace(evaluator=id, metrics={metric.key: metric.low}, evidence="[]")
            found = only_record(row, writer(patterns=(f"{id}.{metric.key}",)))["attributes"]
            labels[metric.better, metric.threshold is None or metric.threshold == metric.low] = found.get(
                "gen_ai.evaluation.score.label"
            )
            assert ("gen_ai.evaluation.score.label" in found) == (metric.threshold is not None)
    assert labels["higher", False] == "fail"
    assert labels["lower", False] == "pass"


def test_no_explanation_by_default_and_never_a_text_or_an_id_of_a_chunk() -> None:
    assert "gen_ai.evaluation.explanation" not in only_record(ROW, writer())["attributes"]
    explanation = only_record(ROW, writer(explanations=True))["attributes"]["gen_ai.evaluation.explanation"]
    assert explanation == "short_answer; unsupported in answer 12-57: 0.12; contexts 0-4"
    many = ROW._replace(evidence=json.dumps([{"field": "answer", "start": n, "end": n + 1} for n in range(13)]))
    explanation = only_record(many, writer(explanations=True))["attributes"]["gen_ai.evaluation.explanation"]
    assert explanation.endswith("answer 9-10; 3 more")


def test_evaluators_of_privacy_never_explain_themselves() -> None:
    leaks = [id for id, evaluator in REGISTRY.items() if evaluator.domain == "privacy"]
    assert {"pii_leakage", "sensitive_data_leakage"} <= set(leaks)
    for id in leaks:
        row = ROW._replace(evaluator=id, metrics={one.key: 0.0 for one in REGISTRY[id].metrics})
        batch = json.loads(writer(explanations=True, patterns=(f"{id}.*",)).encode([row]))
        assert records_of(batch)
        assert "explanation" not in json.dumps(batch)


def test_ids_are_of_the_score_and_the_version_of_its_trace() -> None:
    same = [event_id(ROW._replace(position=2, span_id=""), "a.b") for _ in range(2)]
    assert same == [event_id(ROW, "a.b")] * 2
    others = [ROW._replace(version=8), ROW._replace(app="x"), ROW._replace(fingerprint="f2")]
    assert len({event_id(one, "a.b") for one in others} | {event_id(ROW, "a.c"), same[0]}) == 5


@pytest.mark.parametrize(
    ("trace_id", "subject"),
    [
        (TRACE, (TRACE, "00f067aa0ba902b7")),
        (f"{TRACE}:b7ad6b7169203331", (TRACE, "b7ad6b7169203331")),
        ("t-1", None),
        (TRACE.upper(), None),
        ("0" * 32, None),
        (f"{TRACE}:", None),
        (f"{TRACE}\n", None),
    ],
)
def test_traces_without_an_id_of_opentelemetry_have_no_subject(trace_id: str, subject: tuple[str, str] | None) -> None:
    assert subject_of(ROW._replace(trace_id=trace_id)) == subject


def test_without_patterns_the_primary_metrics_are_sent() -> None:
    primary = wanted_metrics(REGISTRY, ())
    assert {metric.key for metric in primary["groundedness"]} == {"groundedness"}
    assert all(metric.primary and not metric.per for metrics in primary.values() for metric in metrics)
    chosen = wanted_metrics(REGISTRY, ("operations.latency_*", "groundedness.*"))
    assert chosen.keys() == {"operations", "groundedness"}
    assert [metric.key for metric in chosen["operations"]] == ["latency_seconds"]


def test_a_pattern_that_matches_nothing_is_an_error_with_the_nearest_names() -> None:
    with pytest.raises(ConfigError, match=r"groundednes\.\* matches no metric .* did you mean groundedness\."):
        wanted_metrics(REGISTRY, ("operations.*", "groundednes.*"))
    per = next(f"{id}.{one.key}" for id, each in REGISTRY.items() for one in each.metrics if one.per)
    with pytest.raises(ConfigError, match="matches no metric of a trace"):
        wanted_metrics(REGISTRY, (per,))
