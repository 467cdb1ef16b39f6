"""Windows of sampled metrics on the real engine: estimates from parts, merged, revised and by segment."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pytest
from pydantic import BaseModel

from ragtide.drift.checks.failure_rates import FailureRates
from ragtide.drift.problems.chart import chart_points, chart_series
from ragtide.drift.settings import RuleOverride, RuleSettings, WindowSettings
from ragtide.drift.windows import MetricRef, weight_parts
from ragtide.evaluators.judge.calls import Conversation, JudgeCall, JudgeUse, Section
from ragtide.evaluators.judge.replies import Texts
from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.prediction_powered import Estimate, add_sums, estimate, parts_of, sums_of
from ragtide.evaluators.spec import Metric, Need, NoParams, Shared, evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import EVALUATORS, World, dies_before, score_row

pytestmark = pytest.mark.clickhouse


@dataclass(frozen=True)
class Answer:
    answer: str


def _converse(row: Answer, shared: Shared, params: BaseModel) -> Conversation[Outcome]:
    [said] = yield [JudgeCall("statements", (Section("text", row.answer),), Texts)]
    return Scored({"faithful": float(len(said.texts) > 1)})


@evaluator(
    "judged",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Answer,
    metrics=[Metric("faithful", threshold=0.75, primary=True), Metric("other", optional=True)],
    needs={Need.JUDGE},
    judge=JudgeUse(("statements",), _converse),
)
def judged(row: Answer, shared: Shared, params: NoParams) -> Outcome:
    """Whether a judge lists several statements."""
    return shared.judge(_converse(row, shared, params))


def world(database: Database, **rules: Any) -> World:
    frames = WindowSettings(out_of_orderness_s=0, segments={"tenant": ("a", "b")})
    settings = RuleSettings(min_sample=4, **rules)
    return World(database, windows=frames, rules=settings, evaluators={**EVALUATORS, "judged": judged})


def row(here: World, at: int, second: float, **fields: Any) -> ScoreRow:
    """Every fourth trace is judged, with the probability 1/4; of those every tenth does not apply, or failed."""
    cheap = (at * 7 % 10) / 10
    made: dict[str, Any] = {"status": "sampled_out", "reason": "not_sampled"}
    score = None
    if at % 4 == 0:
        made = {"status": "not_applicable", "reason": "no_statements"} if at % 40 == 0 else {}
        made = {"status": "failed", "reason": "judge_timeout"} if at % 40 == 20 else made
        score = None if made else min(1.0, cheap + (at % 3) / 10)
    parts = parts_of("faithful", cheap, 4.0, judged=made.get("status") in (None, "not_applicable"), score=score)
    metrics = {} if score is None else {"faithful": score}
    return score_row(here.at(second), f"t{at}", metrics, evaluator="judged", parts=parts, **made, **fields)


def rows_of(here: World, number: int, **fields: Any) -> list[ScoreRow]:
    return [row(here, at, at * 3600 / number, **fields) for at in range(number)]


def expected(rows: Sequence[ScoreRow]) -> Estimate:
    made = estimate(add_sums(sums_of("faithful", one.parts) for one in rows))
    assert made is not None
    return made


def numbers(made: Estimate) -> tuple[Any, ...]:
    mean = (
        None if one is None else min(max(one, 0.0), 1.0) for one in (made.mean.value, made.mean.low, made.mean.high)
    )
    found = (*mean, made.plain.value, made.saved)
    return tuple(None if one is None else pytest.approx(one, abs=1e-9) for one in found)


def stored(database: Database, size_s: int, segment_value: str = "", metric: str = "faithful") -> list[tuple[Any, ...]]:
    found = database.rows(
        "SELECT estimate, estimate_low, estimate_high, weighted_mean, saved_calls FROM windows FINAL "
        "WHERE metric = {metric:String} AND size_s = {size_s:UInt32} AND segment_value = {value:String} ORDER BY start",
        {"size_s": size_s, "value": segment_value, "metric": f"judged.{metric}"},
    )
    return [tuple(one.values()) for one in found]


def advance(here: World, second: float) -> None:
    here.progress(second)
    here.progress(second, lane="judge")
    here.watch(second)


def test_windows_of_every_size_hold_the_estimate_of_their_traces(database: Database) -> None:
    here = world(database)
    rows = rows_of(here, 1200)
    here.store(rows, "judge")
    advance(here, 3600)
    by_minute = [rows[at : at + 20] for at in range(0, 1200, 20)]
    assert stored(database, 60) == [numbers(expected(some)) for some in by_minute]
    whole = expected(rows)
    assert stored(database, 3600) == [numbers(whole)]
    assert whole.traces == 1200
    assert whole.scored == 240
    assert whole.saved > 150, "the companion tells much"
    assert stored(database, 3600, metric="other") == [(None,) * 5]


def test_segments_have_estimates_of_their_own(database: Database) -> None:
    here = world(database)
    of = {tenant: rows_of(here, 1200, segments={"tenant": tenant}) for tenant in ("a", "b")}
    some = {"a": of["a"][:700], "b": of["b"][700:]}
    here.store([*some["a"], *some["b"]], "judge")
    advance(here, 3600)
    for tenant, rows in some.items():
        assert stored(database, 3600, tenant) == [numbers(expected(rows))]
    assert stored(database, 3600) == [numbers(expected([*some["a"], *some["b"]]))]


def test_a_late_score_revises_the_estimate_and_a_second_run_writes_nothing(database: Database) -> None:
    here = world(database)
    rows = rows_of(here, 1200)
    here.store(rows[:-100], "judge")
    advance(here, 3600)
    assert stored(database, 3600) == [numbers(expected(rows[:-100]))]
    here.store(rows[-100:], "judge")
    advance(here, 3601)
    assert stored(database, 3600) == [numbers(expected(rows))]
    written = database.rows("SELECT count() AS n FROM windows WHERE evaluator = 'judged'")
    here.store(rows, "judge")
    advance(here, 3602)
    assert database.rows("SELECT count() AS n FROM windows WHERE evaluator = 'judged'") == written


def test_a_roll_up_that_dies_before_the_estimates_makes_them_the_next_time(database: Database) -> None:
    here = world(database)
    rows = rows_of(here, 1200)
    here.store(rows, "judge")
    here.progress(3600)
    here.progress(3600, lane="judge")
    with dies_before("windows"):
        here.watch(3600)
    here.elect()
    advance(here, 3600)
    assert stored(database, 3600) == [numbers(expected(rows))]


def test_metrics_without_sums_have_no_estimate(database: Database) -> None:
    here = world(database)
    here.scores(1, [0.5, 0.7, 0.9])
    here.store([score_row(here.at(2), "t", {"faithful": 0.5}, evaluator="judged")], "judge")
    advance(here, 60)
    assert stored(database, 60) == [(None,) * 5]
    assert database.rows("SELECT count() AS n FROM windows WHERE isNotNull(weighted_mean)") == [{"n": 0}]


def test_a_rule_judges_the_estimate_for_all_traces_and_not_the_judged_ones_alone(database: Database) -> None:
    """Low cheap scores are all judged, of others one in five: the mean of the judged is 0.62, that of all 0.77."""
    here = world(database)
    rows = []
    for at in range(200):
        low = at % 5 == 0
        cheap, weight = (0.3, 1.0) if low else (0.9, 5.0)
        score = cheap - 0.01 * (at % 3) if low or at % 50 < 10 else None
        made: dict[str, Any] = {} if score is not None else {"status": "sampled_out", "reason": "not_sampled"}
        parts = parts_of("faithful", cheap, weight, judged=score is not None, score=score)
        metrics = {} if score is None else {"faithful": score}
        rows.append(score_row(here.at(at / 4), f"t{at}", metrics, evaluator="judged", parts=parts, **made))
    here.store(rows, "judge")
    advance(here, 60)
    scores = [row.metrics["faithful"] for row in rows if row.metrics]
    assert fmean(scores) < 0.75
    [verdict] = database.rows(
        "SELECT value, breached, samples FROM verdicts FINAL WHERE metric = 'judged.faithful' AND segment = '' "
        "AND rule_id LIKE 'mean:%'"
    )
    assert verdict["value"] == pytest.approx(expected(rows).mean.value)
    assert 0.75 < verdict["value"] < 0.8
    assert (verdict["breached"], verdict["samples"]) == (0, len(scores))


def noisy_window(here: World, minute: int, mean: float, spread: float) -> list[ScoreRow]:
    """Make a minute of 100 traces, of which one in five is judged: a third each at the mean, above it and below it."""
    rows = []
    for at in range(100):
        is_judged = at % 5 == 0
        score = mean + spread * (at // 5 % 3 - 1) if is_judged else None
        parts = parts_of("faithful", 0.5, 5.0, judged=is_judged, score=score)
        made: dict[str, Any] = {} if is_judged else {"status": "sampled_out", "reason": "not_sampled"}
        metrics = {} if score is None else {"faithful": score}
        time = here.at(minute * 60 + at / 2)
        row = score_row(time, f"t{minute}-{at}", metrics, evaluator="judged", parts=parts, **made)
        rows.append(row)
    return rows


@pytest.mark.parametrize(("spread", "opens_after"), [(0.3, None), (0.15, 3), (0.01, 2)])
def test_a_problem_opens_once_the_interval_of_the_estimate_is_beyond_the_threshold(
    database: Database, spread: float, opens_after: int | None
) -> None:
    """The estimate is 0.05 below the threshold of 0.75 in each of five minutes; 2 of 3 bad ones are enough."""
    here = world(database)
    opened = None
    for minute in range(5):
        here.store(noisy_window(here, minute, 0.70, spread), "judge")
        advance(here, (minute + 1) * 60)
        if opened is None and any(one.state == "open" for one in here.problems()):
            opened = minute + 1
    assert opened == opens_after
    verdicts = database.rows("SELECT value, low, high, breached FROM verdicts FINAL WHERE metric = 'judged.faithful'")
    assert {row["breached"] for row in verdicts if row["low"] is not None} == {1}
    window = database.rows(
        "SELECT estimate, estimate_low, estimate_high FROM windows FINAL "
        "WHERE metric = 'judged.faithful' AND segment = '' AND size_s = 60 ORDER BY start LIMIT 1"
    )[0]
    first = next(row for row in verdicts if row["low"] is not None)
    assert (first["value"], first["low"], first["high"]) == pytest.approx(tuple(window.values()))


def test_the_message_of_a_problem_has_the_interval(database: Database) -> None:
    here = world(database)
    for minute in range(3):
        here.store(noisy_window(here, minute, 0.5, 0.1), "judge")
        advance(here, (minute + 1) * 60)
    (problem,) = here.problems()
    assert "the mean of judged.faithful is 0.49" in problem.description
    assert "(95 % interval 0.4" in problem.description


def bad_ones_judged(here: World, minute: int, bad_of_others: int) -> list[ScoreRow]:
    """Make a minute of 200 traces. A rule judges the 20 worst, which all fail; of the others 36 with a weight of 5.

    So of all traces about 20 + 5 * `bad_of_others` fail, and of the judged ones 20 + `bad_of_others` of 56.
    """
    rows = []
    for at in range(200):
        is_worst, is_judged = at < 20, at < 20 or at % 5 == 0
        weight = 1.0 if is_worst else 5.0
        score = (0.2 if is_worst or at // 5 <= 3 + bad_of_others else 0.9) if is_judged else None
        parts = parts_of("faithful", 0.3 if is_worst else 0.8, weight, judged=is_judged, score=score)
        made: dict[str, Any] = {} if is_judged else {"status": "sampled_out", "reason": "not_sampled"}
        if score is not None:
            parts |= weight_parts(judged.metrics[0], score, weight)
        metrics = {} if score is None else {"faithful": score}
        time = here.at(minute * 60 + at / 4)
        rows.append(score_row(time, f"t{minute}-{at}", metrics, evaluator="judged", parts=parts, **made))
    return rows


def test_shares_count_judged_traces_by_their_weights(database: Database) -> None:
    """Of the judged traces 37 % fail, of all 11 %: the limit of 20 % is not crossed, and later it is."""
    override = RuleOverride(metric="judged.faithful", rule="share", min=0.75, limit=0.2)
    here = world(database, overrides=(override,), failure_limit=0.2)
    for minute, bad_of_others in enumerate([1, 1, 1, 20, 20]):
        here.store(bad_ones_judged(here, minute, bad_of_others), "judge")
        advance(here, (minute + 1) * 60)
        assert bool(here.open()) == (minute == 4)
    verdicts = database.rows(
        "SELECT value, low, high, wrong, samples FROM verdicts FINAL WHERE metric = 'judged.faithful' AND segment = '' "
        "AND rule_id LIKE 'share:%' ORDER BY start"
    )
    assert [row["value"] for row in verdicts] == pytest.approx([25 / 200] * 3 + [120 / 200] * 2)
    assert [(row["wrong"], row["samples"]) for row in verdicts] == [(7, 56)] * 3 + [(34, 56)] * 2
    assert all(row["low"] < row["value"] < row["high"] for row in verdicts)
    (problem,) = here.open()
    assert "60 % of traces failed judged.faithful, up from 12" in problem.description
    assert "above the limit of 20 % (95 % interval 49.7 % to 70.3 %, on 112 judged traces)" in problem.description
    assert problem.severity == "critical", "60 % of the traffic, though only 40 of 200 traces were judged to be bad"
    series = chart_series(problem, MetricRef(judged, judged.metrics[0]))
    assert series is not None
    points = [point.value for point in chart_points(database, problem, series, 60)]
    assert points == pytest.approx([25 / 200] * 3 + [120 / 200] * 2)


@pytest.mark.parametrize(("rule", "usual", "heavy"), [("mean", 0.2, 0.9), ("share", 0.9, 0.2)], ids=["mean", "share"])
def test_one_heavy_trace_opens_nothing(database: Database, rule: str, usual: float, heavy: float) -> None:
    """Of 30 judged traces in each minute 29 were judged for certain, and one stands for 100: nobody knows its kind."""
    chosen = {"metric": "judged.faithful", "rule": rule, "min": 0.75} | ({"limit": 0.2} if rule == "share" else {})
    override = RuleOverride.model_validate(chosen)
    here = world(database, overrides=(override,), failure_limit=1.0)
    for minute in range(6):
        rows = []
        for at in range(30):
            score, weight = (heavy, 100.0) if at == 0 else (usual, 1.0)
            parts = parts_of("faithful", 0.5, weight, judged=True, score=score)
            parts |= weight_parts(judged.metrics[0], score, weight)
            time = here.at(minute * 60 + at)
            rows.append(score_row(time, f"t{minute}-{at}", {"faithful": score}, evaluator="judged", parts=parts))
        here.store(rows, "judge")
        advance(here, (minute + 1) * 60)
    verdicts = database.rows(
        "SELECT breached, freedom FROM verdicts FINAL WHERE metric = 'judged.faithful' AND segment = '' "
        f"AND rule_id LIKE '{rule}:%'"
    )
    assert len(verdicts) >= 5
    assert {row["breached"] for row in verdicts} == {1}
    assert all(row["freedom"] < 5 for row in verdicts)
    assert here.open() == []


def test_failure_rates_pool_weights_before_they_count(database: Database) -> None:
    """In each minute 8 bad traces of weight 1 and 3 good ones of 20: 12 % are bad, as of 3.8 traces of one weight."""
    here = world(database, failure_limit=0.03)
    rows = []
    for minute in range(60):
        for at in range(11):
            score, weight = (0.2, 1.0) if at < 8 else (0.9, 20.0)
            parts = parts_of("faithful", 0.5, weight, judged=True, score=score)
            parts |= weight_parts(judged.metrics[0], score, weight)
            time = here.at(minute * 60 + at)
            rows.append(score_row(time, f"t{minute}-{at}", {"faithful": score}, evaluator="judged", parts=parts))
    here.store(rows, "judge")
    advance(here, 3600)
    (event,) = here.check(FailureRates(), here.at(3601), here.rules).events
    said = json.loads(event.attributes)
    assert said["value"] == pytest.approx(8 / 68)
    assert "an estimated 11.8 % of traces failed" in event.description


def test_failure_rates_count_judged_traces_by_their_weights(database: Database) -> None:
    """The limit of 20 % is crossed by judged traces in every minute, by all traces from the fourth on."""
    here = world(database, failure_limit=0.2)
    for minute, bad_of_others in enumerate([1, 1, 1, 20, 20]):
        here.store(bad_ones_judged(here, minute, bad_of_others), "judge")
        advance(here, (minute + 1) * 60)
        events = here.check(FailureRates(), here.at((minute + 1) * 60 + 1), here.rules).events
        assert bool(events) == (minute == 4)
    assert [(event.metric, event.severity) for event in events] == [("judged.faithful", "critical")]
    assert "an estimated 60 % of traces failed judged.faithful, above the limit of 20 %" in events[0].description
    said = json.loads(events[0].attributes)
    assert (said["wrong"], said["sample_size"]) == (52, 87), "200² / (20 + 36 * 25) = 43.5 a minute, not 56"


def test_traces_judged_on_request_are_in_no_window(database: Database) -> None:
    """People ask for bad ones: 40 with a score of 0, beside 20 of a sample with 0.9, and a minute with no other."""
    here = world(database)
    here.store(noisy_window(here, 0, 0.9, 0.01), "judge")
    parts = parts_of("faithful", 0.5, 5.0, judged=False, score=None)
    asked = [
        score_row(here.at(second), f"asked{second}", {"faithful": 0.0}, evaluator="judged", parts=parts)
        for second in [*range(40), *range(60, 100)]
    ]
    failed = score_row(here.at(50), "failed", {}, evaluator="judged", status="failed", reason="judge_reply")
    here.store([row._replace(weight=0.0) for row in [*asked, failed]], "judge")
    advance(here, 180)
    rows = database.rows(
        "SELECT seen, sampled, applicable, scored, failed, min, skipped['on_request'] AS asked, estimate, "
        "arraySum(mapValues(bins)) AS n FROM windows FINAL "
        "WHERE metric = 'judged.faithful' AND segment = '' AND size_s = 60 ORDER BY start"
    )
    first, second = rows
    assert (first["sampled"], first["applicable"], first["scored"], first["failed"]) == (20, 20, 20, 0)
    assert (first["n"], first["asked"]) == (20, 41)
    assert first["min"] == pytest.approx(0.89)
    assert first["estimate"] == pytest.approx(0.8995, abs=1e-3)
    assert (second["scored"], second["n"], second["estimate"], second["asked"]) == (0, 0, None, 40)
    assert here.problems() == []
