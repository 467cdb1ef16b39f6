"""`connect` reads scores, windows, problems and insights of the real engine, filtered, bounded and read-only."""

import json
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragtide import Connection, CutWarning, connect
from ragtide.drift.insights.model import InsightRow
from ragtide.drift.jobs import server_time
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.sample import score
from tests.infra.fresh_database import reached
from tests.label_rows import label_row
from tests.stream.pipe.problem_site import Site
from tests.stream.pipe.replaying import BASE_MS, fields, file_source, go, lines, settings
from tests.stream.pipe.test_replay_windows import jobs

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.clickhouse
START = datetime.fromtimestamp(BASE_MS / 1000, UTC)


@pytest.fixture
def connection(database: Database) -> Connection:
    return Connection(database, EvaluatorSettings())


def replayed(database: Database, tmp_path: Path, *records: dict[str, Any], run: str = "live") -> None:
    file = tmp_path / f"{run}.jsonl"
    file.write_text(lines(*records))
    go(database, file_source(file), run, chosen=settings(evaluators={"enabled": ["exact_match", "operations"]}))


def test_scores_have_a_row_per_metric_and_null_where_there_is_none(
    connection: Connection, database: Database, tmp_path: Path
) -> None:
    of_two = {"trace_id": "t-2", "time": BASE_MS + 61_000, "cost_usd": ...}
    first, second = fields(expected=["It returns a string."]), fields(**of_two)
    replayed(database, tmp_path, first, second, fields(trace_id="t-3", app="other"))
    replayed(database, tmp_path, fields(trace_id="t-4"), run="elsewhere")
    found = connection.scores("docs")
    rows = found.to_dicts()
    assert [one["trace_id"] for one in rows] == ["t-2"] * 8 + ["t-1"] * 9, "the newest first"
    (failed,) = [one for one in rows if one["evaluator"] == "exact_match" and one["trace_id"] == "t-2"]
    shown = (failed["metric"], failed["value"], failed["status"], failed["reason"])
    assert shown == ("", None, "not_applicable", "missing_expected")
    (latency,) = [one for one in rows if one["metric"] == "operations.latency_seconds" and one["trace_id"] == "t-1"]
    assert (latency["value"], latency["time"], latency["segments"]) == (1.5, START, {"tenant": "acme"})
    assert not found.is_cut
    frame = found.to_pandas()
    assert frame["value"].isna().sum() == 1
    assert (frame["segments"].iloc[0], str(frame["time"].dt.tz)) == ({"tenant": "acme"}, "UTC")


def test_scores_can_be_chosen_by_metric_time_run_and_environment(
    connection: Connection, database: Database, tmp_path: Path
) -> None:
    records = [fields(trace_id=f"t-{n}", time=BASE_MS + n * 60_000) for n in range(4)]
    replayed(database, tmp_path, *records)
    replayed(database, tmp_path, fields(trace_id="r-1"), run="elsewhere")

    def ids(**filters: Any) -> list[str]:
        return [one["trace_id"] for one in connection.scores(metrics="operations.cost_usd", **filters).to_dicts()]

    assert ids() == ["t-3", "t-2", "t-1", "t-0"]
    assert ids(start=START + timedelta(minutes=1), end=(START + timedelta(minutes=3)).isoformat()) == ["t-2", "t-1"]
    assert ids(run="elsewhere") == ["r-1"]
    assert ids(environment="staging") == []
    assert ids(end=START) == []
    assert {one["metric"] for one in connection.scores(metrics=["exact_match"]).to_dicts()} == {""}
    assert len(connection.scores(metrics=["exact_match", "operations.cost_usd"])) == 8


def test_more_rows_than_the_limit_are_cut_with_a_warning(
    connection: Connection, database: Database, tmp_path: Path
) -> None:
    replayed(database, tmp_path, *[fields(trace_id=f"t-{n}", time=BASE_MS + n * 1000) for n in range(5)])
    with pytest.warns(CutWarning, match="scores: only the newest 3 rows; narrow the filters or raise limit"):
        found = connection.scores(metrics="operations.cost_usd", limit=3)
    assert ([one["trace_id"] for one in found.to_dicts()], found.is_cut) == (["t-4", "t-3", "t-2"], True)
    assert "scores: 3 rows, cut at limit=3: there are more" in repr(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not connection.scores(metrics="operations.cost_usd", limit=5).is_cut
    with pytest.raises(ConfigError, match="limit is 0; it must be at least 1"):
        connection.scores(limit=0)


def test_windows_have_means_and_coverage(connection: Connection, database: Database, tmp_path: Path) -> None:
    replayed(
        database, tmp_path, *[fields(trace_id=f"t-{n}", latency={"total_s": 1 + n}) for n in range(3)], run="elsewhere"
    )
    jobs(database).run_cycle(server_time(database))
    rows = connection.windows("docs", metrics="operations.latency_seconds", size_s=60, run="elsewhere").to_dicts()
    (window,) = [one for one in rows if one["start"] == START]
    assert (window["mean"], window["value"], window["scored"], window["seen"]) == (2.0, None, 3, 3)
    hours = connection.windows(
        "docs", metrics="operations", run="elsewhere", start=START, end=START + timedelta(hours=1)
    )
    assert {one["size_s"] for one in hours.to_dicts()} == {3600}
    (skipped,) = connection.windows(metrics="exact_match", size_s=60, run="elsewhere").to_dicts()
    assert (skipped["mean"], skipped["skipped"]) == (None, {"missing_expected": 3})


def test_problems_are_those_of_the_commands(database: Database) -> None:
    site = Site(database)
    site.sees("drift")
    connection = Connection(database, EvaluatorSettings())
    (row,) = connection.problems("shop").to_dicts()
    wanted = site.problem
    assert (row["problem_id"], row["state"], row["metric"]) == (wanted.problem_id, "open", "quality.good")
    assert (row["description"], row["opened_at"]) == (wanted.description, wanted.opened_at)
    assert json.loads(row["attributes"]) == wanted.attributes
    assert len(connection.problems(metrics="quality", states="open", start=wanted.first_seen_at)) == 1
    assert len(connection.problems(states="resolved", metrics="quality")) == 0, "of an evaluator that is not installed"
    assert len(connection.problems(end=wanted.first_seen_at)) == 0
    assert len(connection.problems(start=wanted.last_seen_at + timedelta(seconds=1))) == 0
    with pytest.raises(ConfigError, match="states: there is no 'opened'; did you mean open"):
        connection.problems(states="opened")


def test_what_people_would_say_has_a_row_per_week_with_labels_of_a_sample(
    connection: Connection, database: Database
) -> None:
    now = server_time(database)
    how: dict[str, Any] = {"evaluator": "faithfulness", "run_id": "live", "weight": 20.0}
    rows, labels = [], []
    for at in range(600):
        app = "shop" if at < 400 else "docs"
        rows.append(score(f"t{at}", app=app, time=now, metrics={"faithfulness": at % 10 / 10}, **how))
        if app == "shop" and at // 10 % 4 == 0:
            labels.append(label_row(f"t{at}", at, thumbs="up" if at % 10 > 3 else "down", score=4.5, sample_rate=0.25))
    rows.append(score("old", app="shop", time=now - timedelta(days=20), metrics={"faithfulness": 0.5}, **how))
    labels += [label_row("old", 900, thumbs="up", sample_rate=0.5), label_row("t500", 901, thumbs="down")]
    database.insert("scores", rows)
    database.insert("labels", labels)
    newest, old = connection.people("faithfulness", "shop").to_dicts()
    assert (newest["metric"], newest["labels"], newest["judged"]) == ("faithfulness.faithfulness", 100, 400)
    assert newest["estimate_low"] < 0.6 < newest["estimate_high"]
    assert newest["coverage"] == pytest.approx(1.0)
    assert (old["estimate"], old["estimate_low"], old["labels"]) == (1.0, None, 1)
    assert newest["start"] > old["start"]
    (scores,) = connection.people("faithfulness", verdict="score", days=1, start=now - timedelta(days=3)).to_dicts()
    assert (scores["app"], scores["estimate"]) == ("shop", 4.5)
    assert {one["app"] for one in connection.people("faithfulness").to_dicts()} == {"shop"}, "complaints are no sample"
    with pytest.raises(ConfigError, match="metrics is empty"):
        connection.people([])
    for wrong in ({"verdict": "thumb"}, {"days": 0}, {"days": 10**12}, {"app": "shp"}):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            connection.people("faithfulness", **wrong)
    with pytest.raises(ConfigError, match="did you mean faithfulness"):
        connection.people("faithfulnes")


def test_metrics_of_ones_own_prompts_are_known(database: Database) -> None:
    prompt = {"prompt": "Is this polite? {answer}"}
    judge = {"endpoints": {"local": {"url": "http://127.0.0.1:9", "model": "m"}}, "byop": {"polite": prompt}}
    changes = {"clickhouse": database.settings.model_dump(), "evaluators": {"judge": judge}}
    changes["clickhouse"]["password"] = database.settings.password.get_secret_value()
    with connect(settings=changes) as own:
        assert len(own.scores(metrics="polite")) == len(own.windows(metrics="polite")) == 0
        with pytest.raises(ConfigError, match="did you mean polite"):
            own.scores(metrics="polit")


def test_insights_of_a_period_that_were_not_withdrawn(connection: Connection, database: Database) -> None:
    def insight(id: str, day: int, type_: str = "cost", withdrawn: int = 0) -> InsightRow:
        start = datetime(2026, 3, day, tzinfo=UTC)
        of_period = (start, start + timedelta(days=1))
        return InsightRow(id, type_, "docs", "", f"{id} says", '{"n": 1}', ["t-1"], ["look"], *of_period, 1, withdrawn)

    database.insert("insights", [insight("a", 1), insight("b", 2, "weak_point"), insight("c", 2, withdrawn=1)])
    rows = connection.insights(start="2026-03-01", end="2026-03-09").to_dicts()
    assert [(one["insight_id"], one["description"]) for one in rows] == [("b", "b says"), ("a", "a says")]
    assert rows[0]["period_start"] == datetime(2026, 3, 2, tzinfo=UTC)
    assert [one["insight_id"] for one in connection.insights(types="cost", start="2026-03-01").to_dicts()] == ["a"]
    assert len(connection.insights()) == 0, "the last day"
    with pytest.raises(ConfigError, match="types: there is no 'costs'; did you mean cost"):
        connection.insights(types=["costs"], start="2026-03-01")


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"app": "dosc"}, "apps: there is no 'dosc'; did you mean docs?"),
        ({"metrics": "operations.latency"}, "metrics: there is no 'operations.latency'; did you mean"),
        ({"start": "yesterday"}, "start: 'yesterday' is not a time; e.g. 2026-03-01"),
        ({"start": "2026-03-01T12:00:00"}, "start: 2026-03-01T12:00:00 has no offset"),
        ({"end": datetime(2026, 3, 1, tzinfo=UTC), "start": "2026-03-02"}, "must lie before end"),
    ],
)
def test_unknown_names_and_times_are_errors(
    connection: Connection, database: Database, filters: dict[str, Any], words: str
) -> None:
    row = "INSERT INTO insights (insight_id, type, app) VALUES ('i', 'cost', 'docs')"
    database.command(row)
    with pytest.raises(ConfigError) as refused:
        connection.scores(**filters)
    assert words in str(refused.value)


def test_values_are_bound_and_never_part_of_a_statement(connection: Connection, database: Database) -> None:
    hostile = "x' OR 1 = 1; DROP TABLE scores; --"
    with pytest.raises(ConfigError):
        connection.scores(hostile)
    assert len(connection.scores(run=hostile)) == 0
    assert len(connection.windows(segment=hostile)) == 0
    assert database.rows("SELECT count() AS n FROM scores") == [{"n": 0}]


def test_tables_in_a_notebook_escape(connection: Connection, database: Database) -> None:
    database.command(
        "INSERT INTO insights (insight_id, type, app, description, period_start, period_end) "
        "VALUES ('i', 'cost', '<b>', '<script>', now(), now() + 60)"
    )
    html = connection.insights()._repr_html_()
    assert "<b>" not in html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_settings_and_variables_say_where_the_server_is(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in reached(database).items():
        monkeypatch.setenv(name, value)
    with connect() as connection:
        assert len(connection.problems()) == 0
    with connect(settings={"clickhouse": {"url": "http://127.0.0.1:1"}}) as away, pytest.raises(Transient):
        away.problems()


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from ragtide.stream.api import frames

    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(frames, "import_module", absent)
    with pytest.raises(ConfigError, match="pyarrow is not installed: pip install pyarrow"):
        connect()
