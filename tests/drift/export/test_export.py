"""Stored scores reach an OTLP endpoint over real HTTP, whatever it answers: once, or again with the same ids."""

import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ragtide.drift.export.job import ScoreExport
from ragtide.drift.export_settings import ExportSettings
from ragtide.drift.job_history import StopRequested
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import elect
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.http_post import Busy
from ragtide.stream.job_schedule import job_schedule
from ragtide.stream.settings.loader import Settings, load
from ragtide.stream.telemetry.registry import Telemetry
from tests.drift.export.scene import (
    DELAY_S,
    EPOCH,
    REGISTRY,
    TIME,
    Exporting,
    HttpSender,
    arrived,
    attributes_of,
    bodies,
    exporting,
    ids,
    score,
    trace,
    trace_id,
)
from tests.infra.webhook_receiver import Answer, Receiver, receiving

pytestmark = pytest.mark.clickhouse


def test_new_scores_are_sent_once_with_the_span_of_their_trace(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    database.insert("traces", [trace(1), trace(2, span_id="")])
    export.store(score(1), score(2), score(3))
    assert export.run() == 3
    assert export.run(10) == 0
    found = {record["traceId"]: record.get("spanId") for record in arrived(receiver)}
    assert found == {trace_id(1): f"{1:016x}", trace_id(2): None, trace_id(3): None}
    [call] = receiver.calls
    headers = {name.lower(): value for name, value in call.headers.items()}
    assert (headers["content-type"], headers["content-encoding"]) == ("application/json", "gzip")
    export.store(score(4))
    assert export.run() == 1
    assert ids(receiver)[3:] == [trace_id(4)]


def test_what_was_stored_before_the_first_run_is_not_sent(database: Database, receiver: Receiver) -> None:
    before = exporting(database, receiver)
    before.store(score(1))
    database.command("TRUNCATE TABLE cursors")
    before.now += timedelta(seconds=61)
    assert before.run() == 0
    assert before.run() == 0
    assert receiver.calls == []


def test_scores_wait_until_every_insert_of_their_time_is_visible(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    assert export.run(59) == 0
    assert export.run(1) == 1


def test_could_not_tell_is_never_a_score(database: Database, receiver: Receiver) -> None:
    """Nor is a tombstone, or a row of a replay or of a probe."""
    export = exporting(database, receiver)
    left_out = [
        score(1, status="failed", reason="crashed", metrics={}),
        score(2, status="not_applicable", reason="too_long", metrics={}),
        score(3, status="sampled_out", reason="not_sampled", metrics={}),
        score(4, is_deleted=1),
        score(5, run_id="replayed"),
        score(6, run_id="probe"),
        score(7)._replace(evaluator="unknown_here"),
        score(8, metrics={"another": 0.5}),
    ]
    for row in left_out:
        export.store(row)
    export.store(score(9))
    assert export.run() == 1
    assert ids(receiver) == [trace_id(9)]


def test_traces_without_an_id_of_opentelemetry_are_counted(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1), score(2, trace_id="order-17"), score(3, trace_id=f"{trace_id(3)}:{'a' * 16}"))
    assert export.run() == 2
    assert export.counts() == {"sent": 2, "no_trace_id": 1}
    assert {(record["traceId"], record.get("spanId")) for record in arrived(receiver)} == {
        (trace_id(1), None), (trace_id(3), "a" * 16),
    }  # fmt: skip


def test_a_redelivered_row_is_the_same_event_and_a_newer_message_is_another(
    database: Database, receiver: Receiver
) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    assert export.run() == 1
    export.store(score(1))
    assert export.run() == 1
    export.store(score(1, version=8))
    assert export.run() == 1
    first, again, newer = arrived(receiver)
    assert first == again
    assert receiver.calls[0].body == receiver.calls[1].body
    assert first["timeUnixNano"] == str(round(TIME.timestamp() * 1000) * 1_000_000)
    found = [one["attributes"] for one in (first, newer)]
    assert found[0]["ragtide.event.id"] != found[1]["ragtide.event.id"]
    assert [int(one["ragtide.event.version"], 16) for one in found] == [7, 8]


@pytest.mark.parametrize("batch_events", [1, 3, 7, 100])
def test_any_size_of_batches_sends_each_once(database: Database, receiver: Receiver, batch_events: int) -> None:
    """Rows of one insert were stored in the same millisecond, so that a page may be larger than a batch."""
    export = exporting(database, receiver, batch_events=batch_events)
    for start in range(0, 20, 5):
        export.store(*(score(number) for number in range(start + 1, start + 6)), after_s=0.001)
    export.store(*(score(number, evaluator="operations") for number in range(21, 31)))
    primary = sum(metric.primary for metric in REGISTRY["operations"].metrics)
    assert export.run() == 20 + 10 * primary
    sizes = [len(batch["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) for batch in bodies(receiver.calls)]
    assert max(sizes) <= max(batch_events, primary)
    events = [record["attributes"]["ragtide.event.id"] for record in arrived(receiver)]
    assert len(events) == len(set(events)) == 20 + 10 * primary


def test_a_run_sends_no_more_than_the_rate_and_the_next_goes_on(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver, batch_events=2, max_events_s=0.4)  # 4 events in a run of 10 s
    for number in range(1, 11):
        export.store(score(number), after_s=0.001)
    sent = [export.run(seconds) for seconds in (61, 10, 10, 10)]
    assert sum(sent) == 10
    assert max(sent) <= 4
    assert sorted(ids(receiver)) == [trace_id(number) for number in range(1, 11)]


@pytest.mark.parametrize(
    ("answer", "says", "pause_s"),
    [
        (Answer(429, headers={"Retry-After": "120"}), "429", 120.0),
        (Answer(503, headers={"Retry-After": "30"}), "503", 30.0),
        (Answer(502, b"oops"), "answered 502: oops", DELAY_S),
        (Answer(504), "answered 504", DELAY_S),
        (Answer(None), "ServerDisconnectedError", DELAY_S),
    ],
)
def test_a_target_that_is_away_gets_the_same_batch_later(
    database: Database, receiver: Receiver, answer: Answer, says: str, pause_s: float
) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    receiver.script += [answer, answer]
    with pytest.raises(Busy, match=says):
        export.run()
    with pytest.raises(Transient, match=f"next attempt in {pause_s - 1:.0f} s"):
        export.run(1)
    assert len(receiver.calls) == 1
    with pytest.raises(Busy, match=says):
        export.run(pause_s)
    assert export.run(pause_s) == 1
    assert len({call.body for call in receiver.calls}) == 1, "byte by byte"
    assert export.counts() == {"sent": 1}


def test_a_hang_ends_at_the_timeout(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    released = threading.Event()
    receiver.script.append(Answer(hang=released))
    with pytest.raises(Busy, match=r"did not answer within 0\.5 s"):
        export.run()
    released.set()
    assert export.run(DELAY_S) == 1


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"\x0a\x00", b"ok", b'{"partialSuccess": null}', b'{"partialSuccess": {}}', b"[]"]
)
def test_any_other_answer_of_2xx_accepts_all(database: Database, receiver: Receiver, body: bytes) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    receiver.script += [Answer(202, body), Answer(204)]
    assert export.run() == 1
    export.store(score(2))
    assert export.run() == 1
    assert export.counts() == {"sent": 2}


def test_the_one_score_that_is_refused_is_found_and_left_out(database: Database, receiver: Receiver) -> None:
    """Eight rows: the batch is refused, and the half, quarter and row with the third one."""
    export = exporting(database, receiver)
    export.store(*(score(number) for number in range(1, 9)))
    receiver.script += [Answer(400), Answer(400), Answer(), Answer(400), Answer(400, b"bad value"), Answer(), Answer()]
    assert export.run() == 7
    assert export.counts() == {"sent": 7, "refused": 1}
    sizes = [len(batch["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) for batch in bodies(receiver.calls)]
    assert sizes == [8, 4, 2, 2, 1, 1, 4]
    assert export.run() == 0


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(401), r"Check otel\.export\.headers and \.url"),
        (Answer(404), r"otel\.export\.url must be the whole URL .* http://collector:4318/v1/logs"),
        (Answer(415), r"an OTLP/HTTP endpoint that reads JSON"),
        (Answer(501), r"an OTLP/HTTP endpoint that reads JSON"),
        (Answer(302, headers={"Location": "http://elsewhere.example/x"}), "redirects to http://elsewhere.example"),
    ],
)
def test_wrong_settings_say_which_and_lose_nothing(
    database: Database, receiver: Receiver, answer: Answer, says: str
) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    receiver.script.append(answer)
    with pytest.raises(ConfigError, match=says) as raised:
        export.run()
    assert "top-secret-path" not in str(raised.value)
    assert export.run(DELAY_S) == 1


def test_after_a_long_outage_old_scores_are_counted_and_left_out(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver, max_age_s=300.0)
    export.store(score(1), score(2))
    receiver.script.append(Answer(503))
    with pytest.raises(Busy):
        export.run()
    assert export.run(400) == 0
    assert export.counts() == {"too_old": 2}
    assert export.measured[-1].lag_s == 60


def test_the_lag_is_that_of_the_cursor(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver)
    export.store(score(1))
    receiver.script.append(Answer(503))
    with pytest.raises(Busy):
        export.run()
    assert export.measured[-1].lag_s == 60 + 61
    export.run(DELAY_S)
    assert export.measured[-1].lag_s == 60


def test_two_targets_have_cursors_of_their_own(database: Database, receiver: Receiver) -> None:
    with receiving() as other:
        first = exporting(database, receiver)
        sender = HttpSender(other.url)
        sender.name = "topic:scores"
        second = Exporting(database, sender)
        first.store(score(1))
        second.now = first.now
        receiver.script.append(Answer(503))
        with pytest.raises(Busy):
            first.run()
        assert second.run() == 1
        assert first.run(DELAY_S) == 1


def test_a_process_that_stops_ends_between_batches(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver, batch_events=1)
    for number in (1, 2, 3):
        export.store(score(number), after_s=0.001)
    stopping = ScoreExport(
        database, ExportSettings(batch_events=1), HttpSender(receiver.url), 10.0, "1.0",
        export.measured.append, lambda: iter([1.0]), lambda: bool(receiver.calls),
    )  # fmt: skip
    with pytest.raises(StopRequested):
        stopping.run(REGISTRY, EPOCH, export.now + timedelta(seconds=61))
    assert len(arrived(receiver)) == 1
    assert export.run() == 2


def test_as_spans_a_row_is_one_span(database: Database, receiver: Receiver) -> None:
    export = exporting(database, receiver, signal="spans", metrics=("groundedness.*",))
    database.insert("traces", [trace(1)])
    both = {metric.key: 0.5 for metric in REGISTRY["groundedness"].metrics}
    export.store(score(1, metrics=both))
    assert export.run() == len(both)
    [batch] = bodies(receiver.calls)
    [span] = batch["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (span["traceId"], span["parentSpanId"]) == (trace_id(1), f"{1:016x}")
    assert {attributes_of(event)["gen_ai.evaluation.name"] for event in span["events"]} == {
        f"groundedness.{key}" for key in both
    }


def test_no_text_of_a_trace_is_ever_sent(database: Database, receiver: Receiver) -> None:
    """Explanations are on; whatever a row holds beyond names and numbers stays here."""
    export = exporting(database, receiver, explanations=True, metrics=("*",))
    secret = "jane.doe@example.org"
    evidence = json.dumps([{"field": "answer", "start": 0, "end": 20, "chunk_id": secret, "kind": "email"}])
    for id in ("pii_leakage", "groundedness"):
        own = {metric.key: 1.0 for metric in REGISTRY[id].metrics}
        segments = {"user": secret}
        export.store(score(1, id, metrics=own, evidence=evidence, segments=segments, categories={"x": secret}))
    assert export.run() > 2
    assert secret not in json.dumps(bodies(receiver.calls))
    values = {r["attributes"]["gen_ai.evaluation.name"].partition(".")[0]: r["attributes"] for r in arrived(receiver)}
    assert values["groundedness"]["gen_ai.evaluation.explanation"] == "email in answer 0-20"
    assert "gen_ai.evaluation.explanation" not in values["pii_leakage"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"url": "collector:4318"}, "give http:// or https:// and a host"),
        ({"url": "http://u:p@collector/v1/logs"}, "user or password"),
        ({"url": "http://c", "headers": {"Content-Encoding": "br"}}, "is set by ragtide"),
        ({"url": "http://c", "headers": {"X": "a\nb"}}, "characters that no header has"),
        ({"headers": {"Authorization": "x"}}, "need otel.export.url"),
        ({"batch_events": 0}, "greater than or equal to 1"),
        ({"signal": "metrics"}, "'logs' or 'spans'"),
        ({"scores_topic": "my scores"}, "should match pattern"),
        ({"url": "http://c/v1/traces"}, r"ends in /v1/traces, and otel\.export\.signal is logs"),
        ({"url": "http://c/otel/v1/logs/", "signal": "spans"}, r"end in /v1/traces, or set signal = logs"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ExportSettings(**settings)


def test_no_message_quotes_what_is_secret(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    file.write_text('[otel.export]\nurl = "http://u:top-secret@collector/v1/logs"\n')
    with pytest.raises(ConfigError, match="user or password") as raised:
        load(file, {})
    assert "top-secret" not in str(raised.value)


@pytest.mark.parametrize("topic", ["rag.traces", "otlp_spans", "rag.spans", "rag.jobs"])
def test_the_topic_is_one_of_its_own(topic: str) -> None:
    with pytest.raises(ConfigError, match="needs a topic of its own"):
        load(None, {"RAGTIDE_OTEL__EXPORT__SCORES_TOPIC": topic})


def test_the_jobs_of_the_settings_send_and_count(database: Database, receiver: Receiver) -> None:
    assert not [
        name for name, _, _ in job_schedule(Settings(), database, Telemetry(), lambda: False) if "export" in name
    ]
    changed = {"RAGTIDE_OTEL__EXPORT__URL": receiver.url, "RAGTIDE_OTEL__EXPORT__SCORES_TOPIC": "scores"}
    settings, telemetry = load(None, changed).settings, Telemetry()
    jobs = {name: job for name, _, job in job_schedule(settings, database, telemetry, lambda: False)}
    assert [name for name in jobs if "export" in name] == ["export:http", "export:topic"]
    term = elect(database, "the only jobs")
    context = JobContext(database, REGISTRY, settings.windows, settings.rules, settings.jobs, term)
    export = Exporting(database, HttpSender(receiver.url))  # which begins the cursor
    export.store(score(1))
    assert jobs["export:http"](context, export.now + timedelta(seconds=61)).raised == 1
    assert ids(receiver) == [trace_id(1)]
    exported = telemetry.exported
    assert exported.events.labels("http", "sent")._value.get() == 1
    assert exported.lag_seconds.labels("http")._value.get() == 60
    receiver.script.append(Answer(503))
    export.store(score(2), after_s=61)
    with pytest.raises(Busy):
        jobs["export:http"](context, export.now + timedelta(seconds=61))
    assert exported.lag_seconds.labels("http")._value.get() == 60 + 61
