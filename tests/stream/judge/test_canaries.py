"""Canaries: judges score traces that never change, on a schedule, past the cache and within limits of their own."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragtide.drift.canaries import load_judge_runs
from ragtide.drift.job_history import StopRequested
from ragtide.drift.leadership import elect, is_newest
from ragtide.evaluators.errors import ConfigError, RagtideError
from ragtide.evaluators.judge.canaries import CANARY_APP, FORMS
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.canary_job import CanaryJob, run_start
from ragtide.stream.job_schedule import job_schedule
from ragtide.stream.judge_canaries import CanaryScorer, load_canaries
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry
from tests.stream.judge.canary_judges import GRADED, known, settings_of, steady
from tests.stream.judge.chat_server import by_rule, chat_server, error

DAY = datetime(2026, 11, 21, tzinfo=UTC)
pytestmark = pytest.mark.clickhouse


def scorer(settings: Settings, database: Database, **more: Any) -> CanaryScorer:
    return CanaryScorer(settings, database, load_canaries(settings), known(settings), **more)


def stored(database: Database, columns: str = "status, reason, form", run_at: datetime = DAY) -> list[tuple[Any, ...]]:
    rows = database.rows(
        f"SELECT {columns} FROM canary_scores FINAL WHERE run_at = {{at:DateTime64(3, 'UTC')}}", {"at": run_at}
    )
    return [tuple(row.values()) for row in rows]


def test_a_run_stores_one_row_for_each_judge_and_canary_and_asks_again_the_next_day(
    database: Database, tmp_path: Path
) -> None:
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server, cache={"path": tmp_path / "replies"})
        found = scorer(settings, database).run(DAY)
        assert (found.scored, found.failed, found.is_complete) == (24, 0, True)
        assert len(server.sent) == 24
        again = scorer(settings, database).run(DAY)
        assert (again.scored, len(server.sent)) == (0, 24), "what has a row is not paid for again"
        scorer(settings, database).run(DAY + timedelta(days=1))
        assert len(server.sent) == 48, "the cache would hide a change"
    assert found.usage["small"].cost_usd == pytest.approx(24 * 0.01)
    rows = stored(database, "evaluator, endpoint, form, status, has(mapKeys(metrics), 'passes')")
    assert set(rows) == {(GRADED, "small", "", "scored", 1)}
    tables = ("traces", "scores", "windows", "dirty_windows", "trace_texts")
    assert [database.rows(f"SELECT count() AS n FROM {table}")[0]["n"] for table in tables] == [0] * 5


def test_each_canary_is_scored_in_another_form_every_day(database: Database) -> None:
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server, {"forms": True})
        for day in range(len(FORMS)):
            scorer(settings, database).run(DAY + timedelta(days=day))
        sent = len(server.sent)
    rows = database.rows("SELECT form, uniqExact(canary) AS canaries, count() AS n FROM canary_scores GROUP BY form")
    assert {row["form"]: (row["canaries"], row["n"]) for row in rows} == {
        "": (24, 72),
        "markdown": (24, 24),
        "padded": (24, 24),
    }, "the prompt reads no chunks, so their order changes nothing and costs nothing"
    assert sent == 72 + 48


def test_calls_are_counted_and_limited_as_those_of_an_application_of_their_own(database: Database) -> None:
    """A call costs one cent, so the money of the day is spent after ten; the rest is scored once there is some."""
    telemetry = Telemetry()
    with chat_server(by_rule(steady())) as server:
        limits: dict[str, Any] = {"limit_by_app": {CANARY_APP: {"usd_per_day": 0.1}}, "endpoint": {"concurrency": 1}}
        found = scorer(settings_of(server, **limits), database, telemetry=telemetry).run(DAY)
        assert not found.is_complete
        assert 10 <= found.scored <= 12
        assert found.scored == len(stored(database)) == len(server.sent)
        leases = database.rows("SELECT app, sum(usd) AS usd FROM budget_leases FINAL GROUP BY app")
        assert [row["app"] for row in leases] == [CANARY_APP]
        rest = scorer(settings_of(server), database).run(DAY)
        assert (found.scored + rest.scored, rest.is_complete) == (24, True)
    labels = {"endpoint": "small", "evaluator": GRADED, "app": CANARY_APP}
    assert telemetry.registry.get_sample_value("ragtide_judge_calls_total", labels) == found.scored
    of_status = {"evaluator": GRADED, "status": "scored"}
    assert telemetry.registry.get_sample_value("ragtide_canary_scores_total", of_status) == found.scored


def test_a_limit_of_calls_a_minute_only_slows_a_run(database: Database) -> None:
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)

    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server, limit={"calls_per_minute": 6_000})
        found = scorer(settings, database, pause=pause).run(DAY)
        assert (found.scored, found.is_complete, waited) == (24, True, [])
        slow = settings_of(server, limit={"calls_per_minute": 1})
        left = scorer(slow, database, pause=pause).run(DAY + timedelta(days=1))
    assert not left.is_complete
    assert set(waited) == {10.0}
    assert 1 <= left.scored < 8, "one call a minute, and the test does not wait"


@pytest.mark.parametrize(("status", "reason"), [(503, "judge_unavailable"), (429, "judge_throttled")])
def test_a_judge_that_is_down_stores_failures_and_is_asked_again(database: Database, status: int, reason: str) -> None:
    broken = error(status)
    with chat_server(broken) as server:
        settings = settings_of(server)
        job = CanaryJob(settings, database, Telemetry(), lambda: False)
        assert job.run(known(settings), DAY).read == 24
        assert {row[:2] for row in stored(database)} <= {("failed", reason), ("failed", "judge_unavailable")}
        sent = len(server.sent)
        assert job.run(known(settings), DAY + timedelta(minutes=1)).read == 0
        assert len(server.sent) == sent, "not at once"
        server.otherwise = by_rule(steady())
        assert job.run(known(settings), DAY + timedelta(minutes=11)).read == 24
        assert {row[:2] for row in stored(database)} == {("scored", "")}
        assert job.run(known(settings), DAY + timedelta(hours=23)).read == 0
        assert job.run(known(settings), DAY + timedelta(hours=25)).read == 24


def test_what_a_judge_does_not_apply_to_is_stored_with_the_reason_and_paid_for_once(database: Database) -> None:
    telemetry = Telemetry()
    with chat_server(by_rule(lambda sent: {"texts": []})) as server:
        settings = settings_of(server)
        evaluators = settings.evaluators.model_copy(update={"enabled": ("faithfulness",)})
        settings = settings.model_copy(update={"evaluators": evaluators})
        found = scorer(settings, database, telemetry=telemetry).run(DAY)
        sent = len(server.sent)
        assert sent > 0
        assert (found.scored, found.failed, found.not_applicable, found.is_complete) == (0, 0, 24, True)
        assert scorer(settings, database).run(DAY).not_applicable == 0
        assert len(server.sent) == sent
    rows = stored(database, "status, reason, length(metrics)")
    assert ("not_applicable", "no_statements", 0) in rows
    assert {row[0] for row in rows} == {"not_applicable"}
    labels = {"evaluator": "faithfulness", "status": "not_applicable"}
    assert telemetry.registry.get_sample_value("ragtide_canary_scores_total", labels) == 24
    [judge] = load_judge_runs(database, DAY).values()
    assert (judge.scored, judge.failed, judge.not_applicable) == (0, 0, 24)


def test_a_judge_that_stays_down_is_asked_four_times_a_run(database: Database) -> None:
    with chat_server(error(503)) as server:
        settings = settings_of(server)
        job = CanaryJob(settings, database, Telemetry(), lambda: False)
        read = [job.run(known(settings), DAY + timedelta(minutes=11 * at)).read for at in range(8)]
    assert read == [24] * 4 + [0] * 4


def test_tries_count_across_restarts_and_failures_stay_visible(database: Database) -> None:
    with chat_server(error(503)) as server:
        settings = settings_of(server)

        def restarted(minutes: float) -> int:
            return (
                CanaryJob(settings, database, Telemetry(), lambda: False)
                .run(known(settings), DAY + timedelta(minutes=minutes))
                .read
            )

        assert [restarted(11 * at) for at in range(6)] == [24] * 4 + [0] * 2
        assert restarted(24 * 60) == 24, "the next day is a new run"
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server)
        database.command("ALTER TABLE canary_scores ADD CONSTRAINT no_row CHECK status = ''")
        for day in range(2, 8):
            with pytest.raises(RagtideError):
                restarted(2 * 24 * 60 + day * 11)
        assert len(server.sent) == 4 * 8


def test_a_reply_without_a_verdict_is_a_failure_and_not_asked_for_again(database: Database) -> None:
    with chat_server(by_rule(lambda sent: {"other": 1})) as server:
        found = scorer(settings_of(server), database).run(DAY)
    assert (found.scored, found.failed, found.is_complete) == (0, 24, True)
    assert {row[:2] for row in stored(database)} == {("failed", "judge_reply")}


def test_a_share_of_zero_turns_canaries_off_too(database: Database) -> None:
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server)
        off = settings.sampling.model_copy(update={"lanes": {"judge": 0.0}})
        job = CanaryJob(settings.model_copy(update={"sampling": off}), database, Telemetry(), lambda: False)
        for minute in range(3):
            with pytest.raises(ConfigError, match="no judge can run"):
                job.run(known(settings), DAY + timedelta(minutes=minute))
        rare = settings.sampling.model_copy(update={"lanes": {"judge": 0.001}})
        assert scorer(settings.model_copy(update={"sampling": rare}), database).run(DAY).scored == 24


def test_agents_have_no_canaries_because_what_they_find_changes(database: Database) -> None:
    with chat_server(by_rule(steady())) as server:
        search = {"url": "http://127.0.0.1:9/search"}
        settings = settings_of(server, endpoint_by_evaluator={"fact_check": "small"}, search=search)
        both = settings.evaluators.model_copy(update={"enabled": (GRADED, "fact_check")})
        assert scorer(settings.model_copy(update={"evaluators": both}), database).run(DAY).scored == 24
        assert {id for (id,) in stored(database, "evaluator")} == {GRADED}
        assert len(server.sent) == 24


def test_an_insert_that_fails_is_paid_for_four_times_and_fails_every_run_of_the_job(database: Database) -> None:
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server)
        job = CanaryJob(settings, database, Telemetry(), lambda: False)
        database.command("ALTER TABLE canary_scores ADD CONSTRAINT no_row CHECK status = ''")
        failed = 0
        for minute in range(0, 180, 5):
            with pytest.raises(RagtideError):
                job.run(known(settings), DAY + timedelta(minutes=minute))
            failed += 1
        assert failed == 36, "while the job waits for its next try too, so that a problem opens"
        assert len(server.sent) == 4 * 8, "one portion, not 144 times a day"
        database.command("ALTER TABLE canary_scores DROP CONSTRAINT no_row")
        assert job.run(known(settings), DAY + timedelta(days=1)).read == 24
        assert job.run(known(settings), DAY + timedelta(days=1, minutes=5)).read == 0


def test_a_run_that_is_stopped_continues_where_it_stopped(database: Database) -> None:
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server)
        with pytest.raises(StopRequested):
            scorer(settings, database, stopped=lambda: len(server.sent) >= 8).run(DAY)
        assert len(stored(database)) == 8
        assert scorer(settings, database).run(DAY).scored == 16
    assert len(server.sent) == 24


def test_a_slow_judge_takes_several_runs_of_the_job(database: Database) -> None:
    """Each portion takes longer than a run of the job may, and the endpoint is away for the first one."""
    seconds = itertools.count(step=200)
    with chat_server(error(503)) as server:
        settings = settings_of(server)
        job = CanaryJob(settings, database, Telemetry(), lambda: False, lambda: float(next(seconds)))
        assert job.run(known(settings), DAY).read == 8
        server.otherwise = by_rule(steady())
        read = [job.run(known(settings), DAY + timedelta(minutes=5 * at)).read for at in range(1, 8)]
        assert read == [8, 8, 0, 8, 0, 0, 0], "the first portion has its second try ten minutes after the last one"
    assert {row[:2] for row in stored(database)} == {("scored", "")}


def test_a_process_that_leads_no_more_sends_no_further_portion(database: Database) -> None:
    term = elect(database, "first", sleep=lambda s: None)
    assert is_newest(database, term)
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server)

        def leads() -> bool:
            if server.sent:
                elect(database, "second", sleep=lambda s: None)
            return is_newest(database, term)

        job = CanaryJob(settings, database, Telemetry(), lambda: False)
        with pytest.raises(StopRequested):
            job.run(known(settings), DAY, leads)
        assert len(server.sent) == len(stored(database)) == 8


def test_what_another_process_stored_meanwhile_is_not_paid_for_again(database: Database) -> None:
    with chat_server(by_rule(steady())) as server:
        settings = settings_of(server)

        def stopped() -> bool:
            if len(server.sent) == 8:
                scorer(settings, database).run(DAY)
            return False

        assert scorer(settings, database, stopped=stopped).run(DAY).scored == 8
        assert len(server.sent) == 24


def test_jobs_score_canaries_only_if_that_is_set(database: Database, tmp_path: Path) -> None:
    def names(settings: Settings) -> set[str]:
        return {name for name, _, _ in job_schedule(settings, database, Telemetry(), lambda: False)}

    with chat_server(error(500)) as server:
        on, off = settings_of(server), settings_of(server, {"enabled": False})
        wrong = settings_of(server, {"file": tmp_path / "none.jsonl"})
        assert names(on) - names(off) == {"canaries"}
        assert "judges" in names(off), "the check reads runs of the command too"
        with pytest.raises(ConfigError, match=r"none\.jsonl cannot be read"):
            names(wrong)
        assert server.sent == []


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([], "has 0 canaries; 8 to 200 are wanted"),
        (["t"] * 8, "line 2: another canary has its trace_id"),
        ([f"t{n}" for n in range(7)], "has 7 canaries"),
        ([f"t{n}" for n in range(201)], "has 201 canaries"),
        (["t1", ""], "line 2: .*trace_id is empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_the_line(
    lines: list[str], fault: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.jsonl"
    more = {"time": "2026-01-01T00:00:00Z", "app": "a", "answer": "b"}
    file.write_text("".join(f"{json.dumps({'trace_id': one, **more})}\n" for one in lines))
    settings = Settings.model_validate({"evaluators": {"judge": {"canaries": {"file": file}}}})
    with pytest.raises(ConfigError, match=fault):
        load_canaries(settings)


def test_own_canaries_are_stored_without_names_of_people_and_applications(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    more = {"time": "2026-01-01T00:00:00Z", "app": "shop", "user_id": "ada", "question": "a?", "answer": "b"}
    file.write_text("".join(f"{json.dumps({'trace_id': f't{n}', **more})}\n" for n in range(8)))
    found = load_canaries(Settings.model_validate({"evaluators": {"judge": {"canaries": {"file": file}}}}))
    assert {(one.trace.app, one.trace.user_id) for one in found} == {(CANARY_APP, None)}


def test_runs_begin_at_multiples_of_the_interval() -> None:
    assert run_start(DAY + timedelta(hours=13), 86_400) == DAY
    assert run_start(DAY + timedelta(hours=13, minutes=5), 3_600) == DAY + timedelta(hours=13)
