"""The dashboard of the pipeline's health, on the real engine, against figures worked out by hand."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from ragtide.dashboards.build import build
from ragtide.dashboards.pipeline_metrics import PANELS
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.version import pack
from ragtide.stream.telemetry.registry import Telemetry
from tests.dashboards.lint import faults, panels, queries
from tests.dashboards.macros import expanded
from tests.dashboards.sample_rows import APP, window
from tests.drift.world import Heartbeat
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

NOW = datetime.now(UTC).replace(microsecond=0)
START = (NOW - timedelta(minutes=30)).replace(second=0)


class Dirty(NamedTuple):
    run_id: str
    app: str
    environment: str
    lane: str
    start: datetime
    mark_id: str
    done: int
    marked_at: datetime


class Run(NamedTuple):
    job: str
    epoch: int
    started_at: datetime
    took_s: float
    failed: str


class Success(NamedTuple):
    job: str
    epoch: int
    finished_at: datetime


class Leader(NamedTuple):
    epoch: int
    holder: str
    elected_at: datetime


class Message(NamedTuple):
    message_id: str
    state: str
    version: int
    written_at: datetime


class Letter(NamedTuple):
    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    reason: str
    detail: str
    stage: str
    size: int
    sha256: str
    ingested_at: datetime


class Mark(NamedTuple):
    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    state: str
    actor: str
    at: datetime


class Stored(NamedTuple):
    """A row of `traces`, with what the lag is computed from."""

    run_id: str
    app: str
    time: datetime
    trace_id: str
    version: int
    ingested_at: datetime


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def beat(seconds: float) -> datetime:
    """Heartbeats are compared with the clock, and the module may have been imported long before the test runs."""
    return datetime.now(UTC) - timedelta(seconds=seconds)


def rows() -> Iterator[tuple[str, list[Any]]]:
    yield (
        "progress",
        [
            Heartbeat("fast", "rag.traces", 0, "w1", ago(5), 100, 0, beat(1)),
            Heartbeat("fast", "rag.traces", 1, "w1", ago(3600), 100, 0, beat(1)),  # nothing waits: not behind
            Heartbeat("model", "rag.traces", 0, "w2", ago(300), 40, 60, beat(2)),
            Heartbeat("model", "rag.traces", 1, "w3", ago(200), 10, 90, beat(600)),  # its worker is silent
            Heartbeat("model", "old.topic", 0, "w3", ago(90_000), 10, 5, beat(90_000)),  # expired
        ],
    )
    yield "watermarks", [WatermarkRow("fast", "rag.traces", ago(60)), WatermarkRow("model", "rag.traces", ago(330))]
    yield (
        "windows",
        [
            one
            for minute in range(3)
            for start in [START + timedelta(minutes=minute)]
            for one in (
                # prod: 2 scored and 2 failed of each; closed 90 s after their end, in the second minute 150 s
                window("operations.error", start, [0.0, 0.0]),
                window(
                    "operations.latency_seconds",
                    start,
                    [1.0, 1.0],
                    closed_at=start + timedelta(seconds=150 + 60 * (minute == 1)),
                ),
                window("groundedness.groundedness", start, [0.5, 0.5], closed_at=start + timedelta(seconds=360)),
                window("groundedness.groundedness", start, [0.0] * 9, run_id="replayed"),
                window("groundedness.groundedness", start, [0.0] * 9, segment="tenant", segment_value="acme"),
            )
        ],
    )
    yield (
        "dirty_windows",
        [
            Dirty("live", APP, "prod", "fast", START, "d1", 0, ago(100)),
            Dirty("live", APP, "prod", "fast", NOW.replace(second=0), "d2", 0, ago(10)),
            Dirty("live", APP, "prod", "model", START, "d3", 0, ago(50)),
            Dirty("live", APP, "prod", "model", START, "d4", 0, ago(40)),
            Dirty("live", APP, "prod", "model", START + timedelta(minutes=1), "d5", 1, ago(40)),
        ],
    )
    yield "job_history", [
        Run("watch", 2, ago(120), 1.0, ""), Run("watch", 2, ago(110), 3.0, ""), Run("watch", 2, ago(100), 2.0, ""),
        Run("drift", 2, ago(90), 4.0, "ConfigError: no right"), Run("drift", 1, ago(90_000), 400.0, "long ago"),
    ]  # fmt: skip
    yield "job_runs", [Success("watch", 2, ago(15)), Success("insights", 1, ago(4000))]
    yield "leaders", [Leader(1, "host-a", ago(5000)), Leader(2, "host-b", ago(1000))]
    yield "outbox", [Message("m1", "pending", 1, ago(400)), Message("m2", "sent", 1, ago(9000))]
    where = ("live", "rag.traces", 0)
    letters = [
        Letter(*where, 1, ago(700), "not_json", "column 3", "decode", 9, "", ago(600)),
        Letter(*where, 2, ago(700), "not_json", "column 4", "decode", 9, "", ago(500)),
        Letter(*where, 3, ago(700), "too_old", "", "decode", 9, "", ago(400)),
        Letter(*where, 4, ago(90_000), "not_json", "", "decode", 9, "", ago(90_000)),
    ]
    yield "dead_letters", letters
    yield "dead_letter_marks", [Mark(*where, 2, ago(700), "replayed", "kim", ago(100))]
    stored = [
        Stored("live", APP, START + timedelta(seconds=i), f"t{i}", pack(1, i), START + timedelta(seconds=3 * i))
        for i in range(11)
    ]
    stored += [
        Stored("live", APP, START, "labelled", pack(1, 1, input_revision=1), START + timedelta(days=1)),
        Stored("replayed", APP, START, "t0", pack(1, 1), START + timedelta(days=1)),
    ]
    yield "traces", stored


class Shown:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.document = build(load(), database=database.name, heartbeat_timeout_s=400)["pipeline"]
        self.queries = dict(queries(self.document))

    def rows(self, where: str, interval_s: int = 60) -> list[dict[str, Any]]:
        return self.database.rows(expanded(self.queries[where], START, NOW + timedelta(seconds=60), interval_s, {}))

    def value(self, where: str) -> Any:
        [row] = self.rows(where)
        [value] = row.values()
        return value


@pytest.fixture(scope="module")
def shown(clickhouse_server: EmbeddedClickHouse) -> Iterator[Shown]:
    with fresh_database(clickhouse_server) as database:
        for table, made in rows():
            database.insert(table, made)
        yield Shown(database)


def test_every_query_gives_something(shown: Shown) -> None:
    assert list(faults(shown.document)) == []
    for where in shown.queries:
        assert shown.rows(where), where


def test_the_numbers_at_the_top(shown: Shown) -> None:
    assert shown.value("stat Records waiting A") == 150  # 60 and 90; the expired partition's 5 do not count
    assert shown.value("stat Furthest behind A") >= 300
    assert shown.value("stat Without heartbeat A") == 1  # w3
    assert shown.value("stat Dead letters A") == 2  # of three in the range, one was replayed
    assert shown.value("stat Jobs last worked A") >= 15
    assert shown.value("stat Oldest message A") >= 400
    assert 0 < shown.value("stat Disk used A") < 1


def test_lanes_have_what_waits_and_their_watermarks(shown: Shown) -> None:
    fast, model = shown.rows("table Lanes A")
    assert (fast["lane"], fast["partitions"], fast["waiting"], fast["behind"]) == ("fast", 2, 0, 0)
    assert (model["lane"], model["partitions"], model["waiting"]) == ("model", 2, 150)
    assert model["watermark"] - fast["watermark"] == pytest.approx(270, abs=1)
    assert shown.rows("table Partitions A")[0]["worker"] == "w3"


def test_lag_over_time_is_read_from_the_closing_of_windows(shown: Shown) -> None:
    found = {(row["time"], row["lane"]): row["delay"] for row in shown.rows("timeseries Time to close a window A")}
    assert found[START, "fast"] == 90
    assert found[START + timedelta(minutes=1), "fast"] == 150
    assert found[START, "model"] == 300


def test_throughput_and_failures_count_each_evaluation_once(shown: Shown) -> None:
    per_minute = {
        (row["time"], row["lane"]): row["evaluations"] for row in shown.rows("timeseries Evaluations per minute A")
    }
    assert per_minute[START, "model"] == 4  # 2 scored and 2 failed
    slow = {(row["lane"]): row["evaluations"] for row in shown.rows("timeseries Evaluations per minute A", 86400)}
    assert slow["model"] == pytest.approx(3 * 4 / 1440)
    assert {row["traces"] for row in shown.rows("timeseries Traces per minute A")} == {12.0}
    failures = shown.rows("timeseries Evaluator failures A")
    assert [(row["reason"], row["failed"]) for row in failures] == [("crashed", 4)] * 3
    by = {row["evaluator"]: row for row in shown.rows("table Failures by evaluator A")}
    assert (by["groundedness"]["failed"], by["groundedness"]["of evaluations"]) == (6, 12)
    assert (by["groundedness"]["share"], by["groundedness"]["lane"]) == (0.5, "model")


def test_insert_lag_leaves_out_labelled_traces_and_replays(shown: Shown) -> None:
    [row] = shown.rows("timeseries Insert lag A")
    assert (row["time"], row["traces"]) == (START, 11)
    assert row["median"] == pytest.approx(10)  # 0, 2, 4 .. 20 s
    assert row["99th percentile"] <= 20


def test_windows_behind_are_those_before_both_watermarks(shown: Shown) -> None:
    fast, model = shown.rows("table Windows behind A")
    assert (fast["waiting"], fast["closable"]) == (2, 1)
    assert (model["waiting"], model["closable"]) == (1, 1)


def test_jobs_and_leaders(shown: Shown) -> None:
    found = {row["job"]: row for row in shown.rows("table Jobs A")}
    assert set(found) == {"watch", "insights", "drift"}
    watch, drift, insights = found["watch"], found["drift"], found["insights"]
    assert (watch["runs"], watch["failed"], watch["median duration"], watch["95th percentile"]) == (3, 0, 2.0, 3.0)
    assert (drift["failed"], drift["last error"], drift["last success"]) == (1, "ConfigError: no right", None)
    assert (insights["runs"], insights["median duration"]) == (0, None)
    newest, first = shown.rows("table Leaders of the jobs A")
    assert (newest["holder"], newest["epoch"], first["led"]) == ("host-b", 2, 4000)


def test_dead_letters_by_reason_and_what_was_done(shown: Shown) -> None:
    found = {row["why"]: row for row in shown.rows("table Dead letters in detail A")}
    assert (found["not json"]["letters"], found["not json"]["open"], found["not json"]["replayed"]) == (2, 1, 1)
    assert (found["not json"]["newest detail"], found["not json"]["position"]) == ("column 4", "0/2")
    assert found["too old"]["open"] == 1
    assert sum(row["letters"] for row in shown.rows("timeseries Dead letters by reason A")) == 3


def test_tables_have_their_sizes(shown: Shown) -> None:
    sizes = {row["table"]: row for row in shown.rows("table Tables A")}
    assert sizes["traces"]["rows"] == 13
    assert sizes["traces"]["bytes"] > 0


def test_panels_of_metrics_are_there_only_where_prometheus_is_set() -> None:
    titles = {panel["title"] for panel in panels(build(load())["pipeline"])}
    with_metrics = build(load(), prometheus_uid="prom")["pipeline"]
    added = [panel for panel in panels(with_metrics) if panel["title"] not in titles and panel["type"] != "row"]
    assert [panel["title"] for panel in added] == [one.title for one in PANELS]
    for panel in added:
        assert panel["datasource"] == {"type": "prometheus", "uid": "prom"}
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert all(target["datasource"]["uid"] == "prom" and target["expr"] for target in panel["targets"])


def test_promql_names_only_metrics_and_labels_that_are_served() -> None:
    kinds = {one.name: one for one in Telemetry().described}
    for panel in PANELS:
        for expression, legend in panel.queries:
            names = re.findall(r"\b(ragtide_\w+)", expression)
            assert names, expression
            for name in names:
                one = kinds[name.removesuffix("_bucket")]
                assert name.endswith("_bucket") == (one.kind == "histogram"), name
                labels = {*one.labels, *(("le",) if one.kind == "histogram" else ())}
                by = {
                    label.strip() for group in re.findall(r"by \(([\w, ]+)\)", expression) for label in group.split(",")
                }
                matched = set(re.findall(r'(\w+)="', expression))
                assert by | matched <= labels, expression
                assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= by | {"instance"}, legend


def test_failures_are_counted_once_whatever_windows_they_are_read_from(clickhouse_server: EmbeddedClickHouse) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    latency = "operations.latency_seconds"
    with fresh_database(
        clickhouse_server, **dict.fromkeys(("windows_minute_days", "windows_hour_days"), 100_000)
    ) as db:
        minutes = [window(latency, noon + timedelta(minutes=minute), [1.0]) for minute in (0, 1, 70)]
        hour = window(latency, noon, [1.0, 1.0], size_s=3600, applicable=6, failed=4, failures={"crashed": 4})
        mended = window(latency, noon + timedelta(minutes=71), [1.0])  # evaluated again, without a failure
        again = mended._replace(applicable=1, failed=0, failures={}, version=2)
        db.insert("windows", [*minutes, hour, mended, again])
        asked = dict(queries(build(load(), database=db.name)["pipeline"]))
        until = noon + timedelta(minutes=90)
        by_evaluator, over_time = (
            db.rows(expanded(asked[where], noon, until, 60, {}))
            for where in ("table Failures by evaluator A", "timeseries Evaluator failures A")
        )
    # An hour of 2 minutes with 2 failures of 3, then a minute with 2 of 3 and one with none of 1.
    assert [(row["evaluator"], row["failed"], row["of evaluations"]) for row in by_evaluator] == [("operations", 6, 10)]
    assert [(row["time"].minute, row["failed"]) for row in over_time] == [(0, 2), (1, 2), (10, 2)]
