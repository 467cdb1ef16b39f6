"""Every query of every dashboard, run on the real engine, against figures added up by hand."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from scipy.stats import binomtest

from ragtide.dashboards.build import build
from ragtide.drift.windows.window_metrics import WindowRow
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.lint import queries
from tests.dashboards.macros import Choice, expanded
from tests.dashboards.sample_rows import APP, NOON, asked, event, window
from tests.dashboards.shown_application import ALL, END, Shown

pytestmark = pytest.mark.clickhouse


def test_the_numbers_at_the_top(shown: Shown) -> None:
    # per minute 12 traces in prod (2 scored and 10 more) and 11 in staging
    assert shown.row("stat Traces A") == {"traces": 10 * (12 + 11)}
    assert shown.row("stat Traces A", {"environment": ["staging"]}) == {"traces": 110}
    # errors: (0.25 + 0.75 + 1.0) / 3
    assert shown.row("stat Errors A")["errors"] == pytest.approx(2 / 3)
    assert shown.row("stat Cost A")["cost"] == pytest.approx(20.0)
    # sorted latencies: 10 x 0.25, 10 x 0.75, 10 x 1.0; rank 0.95 lies in the last ten, a bin is 1 % wide
    assert shown.row("stat Latency, 95th percentile A")["quantile"] == pytest.approx(1.0, rel=0.0051)
    assert shown.row("stat Open problems A") == {"problems": 1}
    until = shown.row("stat Data until A")["until"]
    assert datetime.fromtimestamp(until / 1000, UTC) == END


def test_traces_are_counted_once_where_two_fingerprints_share_a_window(own: Shown) -> None:
    own.database.insert("windows", [window("operations.error", NOON, [1.0, 1.0], fingerprint="f2")])
    assert own.row("stat Traces A") == {"traces": 230}


def test_questions_are_counted_by_topic_and_minute(shown: Shown) -> None:
    found = shown.rows("timeseries Questions by topic A")
    assert [(row["time"] - NOON, row["name"], row["questions"]) for row in found] == [
        (timedelta(0), "csv", 2),
        (timedelta(0), "other", 1),
        (timedelta(minutes=1), "csv", 1),
        (timedelta(minutes=1), "json", 1),
    ]


def test_topics_that_few_questions_are_of_stand_together(own: Shown) -> None:
    own.database.insert("embeddings", [asked(100 + i, 2, f"topic {i:02}") for i in range(25)])
    last = [row for row in own.rows("timeseries Questions by topic A") if row["time"] == NOON + timedelta(minutes=2)]
    assert len(last) == 18  # the three from before, and 17 of these
    assert {row["name"]: row["questions"] for row in last}["all others"] == 8


def test_flip_rates_have_their_intervals(shown: Shown) -> None:
    strong, typo = shown.rows("table Flips by technique A")
    interval = binomtest(8, 40).proportion_ci(0.95, method="wilson")
    assert (strong["techniques"], strong["pairs"], strong["flip rate"]) == ("paraphrase strong", 40, 0.2)
    assert (strong["pass to fail"], strong["fail to pass"], strong["not comparable"]) == (6, 2, 0)
    assert [strong["at least"], strong["at most"]] == pytest.approx([interval.low, interval.high], abs=1e-12)
    assert (typo["techniques"], typo["pairs"], typo["not comparable"]) == ("typo 0.1", 0, 10)
    assert typo["flip rate"] is typo["at least"] is typo["at most"] is None
    assert shown.rows("table Flips by technique A", {"run": "replayed"}) == []
    newest = shown.rows("table Flipped pairs A")
    assert [(row["perturbed"], row["original"], row["flip"]) for row in newest[:3]] == [
        ("p7", "o7", "fail to pass"),
        ("p6", "o6", "fail to pass"),
        ("p5", "o5", "pass to fail"),
    ]
    assert len(newest) == 8


def test_questions_asked_again_are_shown_as_the_newest_look_found_them(shown: Shown) -> None:
    said, scored = shown.rows("table Questions asked again A")
    interval = binomtest(8, 40).proportion_ci(0.95, method="wilson")
    assert (said["metric"], said["questions"], said["answers"], said["inconsistent"]) == (
        "answers.agreement",
        40,
        120,
        0.2,
    )
    assert [said["at least"], said["at most"]] == pytest.approx([interval.low, interval.high], abs=1e-12)
    assert (said["limit"], said["looked at"]) == (0.1, NOON + timedelta(minutes=5))
    assert scored["inconsistent"] is scored["at least"] is scored["at most"] is None
    (pair,) = shown.rows("table Answers that disagree A")
    assert (pair["metric"], pair["differ by"], pair["at odds"], pair["other"]) == (
        "answers.agreement",
        "claims",
        "odd5",
        "other5",
    )
    assert shown.rows("table Questions asked again A", {"run": "replayed"}) == []


def test_no_traffic_is_no_data(shown: Shown) -> None:
    nobody: dict[str, Choice] = {"app": "nobody"}
    for panel in ("Traces", "Latency, 95th percentile", "Data until"):
        assert shown.rows(f"stat {panel} A", nobody) == []
    for panel, column in (("Errors", "errors"), ("Cost", "cost")):
        assert shown.row(f"stat {panel} A", nobody) == {column: None}


def test_means_are_over_scored_records_and_a_gap_stays_one(own: Shown) -> None:
    full = "groundedness.groundedness"
    own.database.insert("windows", [window(full, NOON + timedelta(minutes=10), [])])
    found = own.rows(f"timeseries {full} A", {"environment": ["prod"]})
    assert [row["time"] for row in found] == [NOON + timedelta(minutes=minute) for minute in range(11)]
    assert [row["mean"] for row in found] == [0.5] * 10 + [None]
    assert own.rows(f"timeseries {full} A")[0]["mean"] == pytest.approx(2 / 3)


def test_an_estimate_is_averaged_over_all_traces_with_its_interval_and_a_gap_stays_one(own: Shown) -> None:
    full = "faithfulness.faithfulness"
    made = {"estimate": 0.5, "estimate_low": 0.4, "estimate_high": 0.6, "weighted_mean": 0.45, "version": 2}
    larger = {**made, "estimate": 0.8, "estimate_low": 0.79, "estimate_high": 0.81, "weighted_mean": 0.9}
    own.database.insert(
        "windows",
        [
            window(full, NOON, [0.5], seen=100, **made),
            window(full, NOON, [0.5], seen=300, prompt_version="p2", **larger),
            window(full, NOON + timedelta(minutes=1), [0.5], version=2, weighted_mean=0.5, estimate=0.7),
        ],
    )
    found = own.rows(f"timeseries {full}: estimate for all traces A", {"environment": ["prod"]})
    level, error = (100 * 0.5 + 300 * 0.8) / 400, ((100 * 0.1) ** 2 + (300 * 0.01) ** 2) ** 0.5 / 400
    expected = {"estimate": level, "at least": level - error, "at most": level + error}
    assert found[0].pop("time") == NOON
    assert found[0] == pytest.approx({**expected, "weighted mean": (100 * 0.45 + 300 * 0.9) / 400})
    assert [found[1][name] for name in ("estimate", "at least", "at most", "weighted mean")] == [None, None, None, 0.5]
    assert [found[2][name] for name in ("estimate", "weighted mean")] == [None, None]


def test_metrics_of_one_graph_have_a_line_each(own: Shown) -> None:
    own.database.insert("windows", [window("rouge.rouge_2", NOON, [0.125], version=2)])
    (first, *_) = own.rows("timeseries rouge: rouge_1 and 2 more A", {"model": ["m1"]})
    assert first == {"time": NOON, "rouge_1": 0.5, "rouge_2": 0.125, "rouge_lsum": 0.5}


def test_latency_over_time(own: Shown) -> None:
    values = [0.0, *(0.01 * i for i in range(1, 100))]  # 0.00 .. 0.99, one each
    at = NOON + timedelta(minutes=3)
    own.database.insert("windows", [window("operations.latency_seconds", at, values, version=2)])
    found = {row["time"]: row for row in own.rows("timeseries Latency A", {"environment": ["prod"]})}
    assert {row["p95"] for time, row in found.items() if time != at} == {found[NOON]["p95"]}
    assert found[at]["p50"] == pytest.approx(0.495, rel=0.02)
    assert found[at]["p95"] == pytest.approx(0.945, rel=0.02)
    assert found[at]["p99"] == pytest.approx(0.985, rel=0.02)
    assert own.rows("timeseries Latency B", {"environment": ["prod"]})[3]["mean"] == pytest.approx(0.495)


def test_coverage_adds_up_to_what_was_seen(shown: Shown) -> None:
    found = shown.rows("timeseries pii_leakage: coverage A")
    # prod: 2 scored, staging: 1; each with 2 failed, 3 not applicable, 5 not evaluated
    assert found[0] == {"time": NOON, "scored": 3, "failed": 4, "not applicable": 6, "not evaluated": 10}
    assert len(found) == 10
    assert sum(sum(v for k, v in row.items() if k != "time") for row in found) == 230


def test_figures_of_the_range_do_not_change_with_the_size_of_windows(own: Shown) -> None:
    """Minutes at the ends, hours and days between them: each trace counts once, whatever the range and the choice."""
    first = datetime(2026, 3, 1, 21, 30, tzinfo=UTC)
    until = datetime(2026, 3, 4, 2, 20, tzinfo=UTC)  # the hour from 02:00 and the day of the 4th are still open
    minutes = [first + timedelta(minutes=10 * number) for number in range(int((until - first).total_seconds()) // 600)]

    def failed(some: list[datetime]) -> float:
        return sum(one.minute % 20 == 0 for one in some)

    def cost(some: list[datetime]) -> float:
        return sum(one.hour + 1.0 for one in some)

    def stat(title: str, begin: datetime, end: datetime, interval_s: int, chosen: dict[str, Choice]) -> object:
        return own.database.rows(expanded(own.queries[f"stat {title} A"], begin, end, interval_s, chosen))

    def traffic(start: datetime, inside: list[datetime], size_s: int = 60) -> Iterator[WindowRow]:
        common: dict[str, Any] = {"app": "long", "size_s": size_s, "seen": len(inside)}
        yield window("operations.error", start, [float(one.minute % 20 == 0) for one in inside], **common)
        yield window("operations.cost_usd", start, [one.hour + 1.0 for one in inside], **common)
        yield window("operations.latency_seconds", start, [2.0 for _ in inside], **common)

    def larger(size_s: int, closed: datetime) -> Iterator[WindowRow]:
        starts = sorted({one - timedelta(seconds=one.timestamp() % size_s) for one in minutes})
        for start in (one for one in starts if one + timedelta(seconds=size_s) <= closed):
            inside = [one for one in minutes if start <= one < start + timedelta(seconds=size_s)]
            yield from traffic(start, inside, size_s)

    own.database.insert("windows", [row for one in minutes for row in traffic(one, [one])])
    own.database.insert("windows", list(larger(3600, datetime(2026, 3, 4, 2, tzinfo=UTC))))
    own.database.insert("windows", list(larger(86400, datetime(2026, 3, 4, tzinfo=UTC))))
    begins = [first, first + timedelta(hours=4), first + timedelta(days=1), first - timedelta(days=30)]
    for begin in begins:
        for end in (until, until - timedelta(hours=8), until - timedelta(hours=1)):
            for interval_s, resolution in ((10, "0"), (7200, "0"), (90_000, "0"), (10, "3600")):
                chosen: dict[str, Choice] = {**ALL, "app": "long", "resolution": resolution}
                inside = [minute for minute in minutes if begin <= minute < end]
                at = (begin, end - timedelta(seconds=1), interval_s, chosen)
                assert stat("Traces", *at) == [{"traces": len(inside)}]
                assert stat("Errors", *at) == [{"errors": failed(inside) / len(inside)}]
                assert stat("Cost", *at) == [{"cost": cost(inside)}]
                assert stat("Latency, 95th percentile", *at) == [{"quantile": pytest.approx(2.0, rel=0.0051)}]


def test_reasons_most_frequent_first(shown: Shown) -> None:
    found = shown.rows("table pii_leakage: not scored, why A")
    assert found == [{"reason": "missing_contexts", "traces": 60}, {"reason": "crashed", "traces": 40}]


def test_traffic_is_per_minute_whatever_the_windows(own: Shown) -> None:
    minute = own.rows("timeseries Traffic A")
    assert [(row["environment"], row["traces"]) for row in minute if row["time"] == NOON] == [
        ("prod", 12.0),
        ("staging", 11.0),
    ]
    five = own.rows("timeseries Traffic A", interval_s=300)
    assert {(row["environment"], row["traces"]) for row in five} == {("prod", 12.0), ("staging", 11.0)}
    hour = window("operations.error", NOON, [0.0] * 590, size_s=3600)
    own.database.insert("windows", [hour])
    assert [row["traces"] for row in own.rows("timeseries Traffic A", interval_s=3600)] == [10.0]
    assert [row["traces"] for row in own.rows("timeseries Traffic A", {"resolution": "3600"})] == [10.0]


def test_windows_of_the_sizes_that_there_are_are_asked_for(database: Database) -> None:
    full, start = "groundedness.groundedness", datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    sizes = ((10, 0.125), (60, 0.5), (600, 0.25))
    database.insert("windows", [window(full, start, [mean], size_s=size_s) for size_s, mean in sizes])
    built = build(load(), database=database.name, sizes_s=(10, 600))["application"]
    asked = dict(queries(built))[f"timeseries {full} A"]
    for interval_s, mean in ((1, 0.125), (599, 0.125), (600, 0.25)):
        sql = expanded(asked, start, start + timedelta(minutes=10), interval_s, ALL)
        assert [row["mean"] for row in database.rows(sql)] == [mean]


def test_open_problems_the_worst_first(own: Shown) -> None:
    later = NOON + timedelta(minutes=8)
    opened = event("d", "d1", "opened", 1, later, severity="info", actions=("a", "b"))
    why = event("a", "a9", "explained", 2, later, description="Of one tenant.", attributes='{"opening": 1}')
    own.database.insert("problem_events", [opened, why])
    first, second = own.rows("table Open problems A")
    link = first.pop("trace_link")
    assert first == {
        "severity": "critical", "opened": NOON + timedelta(minutes=5), "type": "accuracy",
        "metric": "groundedness.groundedness", "model": "m1", "symptoms": 0, "segment": "",
        "description": "it fell further", "why": "Of one tenant.", "what to do": "", "worst trace": "t2",
        "number of examples": 2, "problem_id": "a",
        "taken by": "kim", "muted by": "", "before_ms": (NOON - timedelta(minutes=25)).timestamp() * 1000,
    }  # fmt: skip
    kept = f"from={1000 * int(NOON.timestamp())}&to={1000 * int(END.timestamp())}"
    assert link == f"/d/ragtide-trace?var-app=helpdesk&var-run=live&var-trace_id=t2&{kept}"
    assert (second["opened"], second["severity"], second["what to do"]) == (later, "info", "a b")
    assert own.rows("table Open problems A", {"environment": ["staging"]}) == []
    (fair,) = own.rows("table Open problems A", {"standard": ["Fair"]})
    assert fair["severity"] == "critical"


def test_problems_on_the_graphs(shown: Shown) -> None:
    found = shown.rows("annotation Problems")
    assert [(row["time"], row["text"]) for row in found] == [
        (NOON + timedelta(minutes=5), "critical accuracy: it fell further"),
        (NOON + timedelta(minutes=1), "warning accuracy: slow"),
        (NOON, "info accuracy: it fell"),
    ]
    assert [row["timeEnd"] for row in found[1:]] == [NOON + timedelta(minutes=3), NOON + timedelta(minutes=2)]
    assert found[0]["tags"] == "open,critical,groundedness.groundedness"
    assert [row["text"] for row in shown.rows("annotation Problems", end=NOON + timedelta(seconds=30))] == [
        "info accuracy: it fell"
    ]


def test_what_can_be_chosen(shown: Shown) -> None:
    def values(name: str, **chosen: Choice) -> list[str]:
        return [next(iter(row.values())) for row in shown.rows(f"variable {name}", chosen)]

    assert values("run") == ["live", "replayed"]
    assert values("app") == ["another", APP]
    assert values("environment") == ["prod", "staging"]
    assert values("model") == ["m1", "m2"]
    assert values("model", environment=["staging"]) == ["m2"]
    assert values("standard") == ["Fair", "Safe"]


def test_insights_of_the_period(shown: Shown) -> None:
    """Also of a period that has not ended, and of one that began before the range."""
    assert len(shown.rows("table Insights A", end=NOON + timedelta(minutes=2))) == 1
    assert shown.row("table Insights A")["description"] == "three questions fail"
    assert shown.rows("table Insights A", {"environment": ["staging"]}) == []
