"""Problems from scores, on the real engine: which are raised, once, with what words."""

import json
from typing import Any

import pytest

from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.store import load_problems
from ragtide.drift.rules.resolve import check_settings
from ragtide.drift.settings import RuleOverride, RuleSettings, WindowSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import MOST_EVIDENCE
from ragtide.evaluators.spec import Metric
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS, World, dies_before, made, score_row, text_row

pytestmark = pytest.mark.clickhouse
FAIR = made("fair", [Metric("passes", threshold=0.5, primary=True)], domain="fairness")
RULES = RuleSettings(min_sample=10, k=1, m=1, resolve_after=1, update_every_s=0, any_resolve_after_s=120)


def minute(world: World, number: int, values: list[float], **fields: Any) -> None:
    """A minute of records, stored; then a round of the jobs at its end."""
    world.scores(number * 60, values, **fields)
    world.advance((number + 1) * 60)


def events(database: Database) -> list[tuple[str, str]]:
    rows = database.rows("SELECT metric, event FROM problem_events FINAL ORDER BY at, metric, event")
    return [(row["metric"], row["event"]) for row in rows]


def only(world: World) -> Problem:
    (problem,) = world.problems()
    return problem


def test_jobs_that_run_twice_raise_nothing_twice(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, [0.4] * 20)
    for second in (60, 61, 62):
        world.watch(second)
    assert events(database) == [("quality.good", "opened")]
    assert database.rows("SELECT count() AS n FROM verdicts")[0]["n"] == 2  # of level and of coverage


def test_two_leaders_in_turn_raise_nothing_twice(database: Database) -> None:
    world = World(database, rules=RULES)
    world.scores(0, [0.4] * 20)
    world.progress(60)
    zombie = world.elect()
    world.watch(60)
    zombie.run_cycle(world.at(60))
    world.elect()
    world.watch(61)
    assert events(database) == [("quality.good", "opened")]


def test_a_crash_between_verdicts_and_events_loses_no_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    world.scores(0, [0.4] * 20)
    world.progress(60)
    with dies_before("problem_events"):
        world.watch(60)
    assert events(database) == []
    world.elect()
    world.watch(61)
    assert events(database) == [("quality.good", "opened")]


def test_late_rows_are_judged_again_once(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, [0.9] * 20)
    assert world.problems() == []
    world.scores(10, [0.1] * 40)
    world.watch(61)
    assert events(database) == [("quality.good", "opened")]
    (verdict,) = database.rows(
        "SELECT * FROM verdicts FINAL WHERE metric = 'quality.good' AND startsWith(rule_id, 'mean')"
    )
    assert (verdict["revision"], verdict["samples"], verdict["breached"]) == (2, 60, 1)
    count = "SELECT count() AS n FROM verdicts"
    before = database.rows(count)[0]["n"]
    world.watch(62)
    assert database.rows(count)[0]["n"] == before


def test_frozen_windows_never_page(database: Database) -> None:
    frames = WindowSettings(out_of_orderness_s=0, allowed_lateness_s=300)
    world = World(database, rules=RULES, windows=frames)
    minute(world, 0, [0.9] * 20)
    world.advance(600)
    world.scores(10, [0.1] * 100)  # a backfill of a window that was judged
    world.scores(130, [0.1] * 100)  # and of one that never was
    world.advance(601)
    assert database.rows(
        "SELECT sum(scored) AS n FROM windows FINAL WHERE metric = 'quality.good' AND size_s = 60"
    ) == [{"n": 220}]
    assert world.problems() == []
    assert {row["samples"] for row in database.rows("SELECT samples FROM verdicts FINAL")} == {20}


def test_windows_are_pooled_to_the_minimum_sample(database: Database) -> None:
    world = World(database, rules=RuleSettings(min_sample=30, k=1, m=1, resolve_after=1))
    for number in range(5):
        minute(world, number, [0.4] * 12)
        assert len(world.problems()) == (number >= 2)
    verdicts = database.rows("SELECT start, end, samples FROM verdicts FINAL WHERE startsWith(rule_id, 'mean')")
    assert [(v["start"], v["end"], v["samples"]) for v in verdicts] == [(world.at(0), world.at(180), 36)]
    minute(world, 5, [0.4] * 12)
    ends = database.rows("SELECT end FROM verdicts FINAL WHERE startsWith(rule_id, 'mean') ORDER BY end")
    assert [row["end"] for row in ends] == [world.at(180), world.at(360)]


def test_a_leak_is_raised_at_one_record_and_resolves_after_its_quiet_time(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, [1.0] * 3 + [0.0] + [1.0] * 3, evaluator="leak", key="passes")
    problem = only(world)
    assert (problem.state, problem.type, problem.severity) == ("open", "privacy", "critical")
    assert problem.code == "P0300 Privacy"
    assert problem.attributes["wrong"] == 1
    assert len(problem.examples) == 1
    assert problem.description.startswith(
        "shop (prod, model m1): 1 of 7 traces failed leak.passes (none allowed), since "
    )
    minute(world, 1, [1.0] * 3, evaluator="leak", key="passes")
    assert only(world).state == "open"
    minute(world, 2, [1.0] * 3, evaluator="leak", key="passes")
    assert only(world).state == "resolved"


def test_an_app_may_allow_its_own_addresses(database: Database) -> None:
    own = RuleOverride(metric="leak.passes", app="shop", allow_kinds=("ipv4",), allow_texts=("*@Acme.example",))
    world = World(database, rules=RULES.model_copy(update={"overrides": (own,)}))

    def leaks(second: int, trace_id: str, *found: tuple[str, str]) -> None:
        answer = " ".join(text for _, text in found)
        evidence = [
            {"field": "answer", "start": answer.index(text), "end": answer.index(text) + len(text), "kind": kind}
            for kind, text in found
        ]
        row = score_row(world.at(second), trace_id, {"passes": 0.0}, evaluator="leak", evidence=json.dumps(evidence))
        database.insert("trace_texts", [text_row(row, "who?", answer)])
        world.store([row])

    leaks(0, "ours", ("email", "help@acme.example"), ("ipv4", "10.0.0.1"))
    world.advance(60)
    assert world.problems() == []
    leaks(60, "theirs", ("email", "help@acme.example"), ("email", "ada@other.example"))
    leaks(61, "ours-again", ("email", "help@acme.example"))
    world.advance(120)
    assert only(world).attributes["wrong"] == 1


def test_a_record_with_as_much_evidence_as_is_stored_is_not_excused(database: Database) -> None:
    """What was left out may be no address of the app's own."""
    own = RuleOverride(metric="leak.passes", app="shop", allow_kinds=("email",))
    world = World(database, rules=RULES.model_copy(update={"overrides": (own,)}))
    for second, count in enumerate((MOST_EVIDENCE - 1, MOST_EVIDENCE)):
        evidence = json.dumps([{"field": "answer", "start": 0, "end": 1, "kind": "email"}] * count)
        at = world.at(second)
        world.store([score_row(at, f"t-{count}", {"passes": 0.0}, evaluator="leak", evidence=evidence)])
    world.advance(60)
    assert only(world).attributes["wrong"] == 1


def test_a_share_of_failed_checks_above_the_limit(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, [1.0] * 19 + [0.0], evaluator="checked", key="passes")  # 5 %: at the limit
    assert world.problems() == []
    minute(world, 1, [1.0] * 18 + [0.0] * 2, evaluator="checked", key="passes")
    problem = only(world)
    assert problem.attributes["value"] == pytest.approx(0.1)
    assert problem.attributes["baseline"] == pytest.approx(0.05)
    assert problem.attributes["effect_size"] == pytest.approx(0.1925, abs=1e-4)  # 2 asin √0.1 - 2 asin √0.05
    assert problem.severity == "warning"
    assert "10 % of traces failed checked.passes, up from 5 %, above the limit of 5 %" in problem.description
    assert "2 of 20 traces" in problem.description


def test_a_metric_without_a_threshold_is_watched_where_settings_give_one(database: Database) -> None:
    minute(World(database, rules=RULES), 0, [9.0] * 20, evaluator="speed", key="seconds")
    assert load_problems(database) == []
    slow = RuleOverride(metric="speed.seconds", max=2.0)
    slower = RuleOverride(metric="speed.seconds", app="batch", max=20.0)
    world = World(database, rules=RULES.model_copy(update={"overrides": (slower, slow)}))
    minute(world, 1, [9.0] * 20, evaluator="speed", key="seconds", app="shop")
    minute(world, 1, [9.0] * 20, evaluator="speed", key="seconds", app="batch")
    problem = only(world)
    assert problem.app == "shop"
    assert "the mean of speed.seconds" in problem.description
    assert "above 2 s" in problem.description


def test_records_that_got_no_score_are_a_problem_of_coverage_and_not_of_quality(database: Database) -> None:
    world = World(database, rules=RULES)
    failed = [score_row(world.at(i), f"f{i}", status="failed", reason="crashed") for i in range(6)]
    world.store([*failed, *(score_row(world.at(i), f"s{i}", {"good": 0.9}) for i in range(14))])
    world.advance(60)
    problem = only(world)
    assert (problem.aspect, problem.kinds, problem.type) == ("coverage", ("coverage",), "data_quality")
    assert problem.attributes["wrong"] == 6
    assert problem.attributes["reasons"] == ["crashed 6"]
    assert set(problem.examples) == {row.trace_id for row in failed}
    assert "Accountable and Transparent" in problem.standards


def test_a_metric_that_nobody_scored_is_a_problem_of_coverage(database: Database) -> None:
    world = World(database, rules=RULES)
    world.store([score_row(world.at(i), f"f{i}", status="failed", reason="crashed") for i in range(20)])
    world.advance(60)
    assert [(p.aspect, p.attributes["value"]) for p in world.problems()] == [("coverage", 1.0)]


@pytest.mark.parametrize("stuck", [True, False])
def test_a_problem_says_where_it_rests_on_windows_that_no_longer_waited(database: Database, stuck: bool) -> None:
    frames = WindowSettings(out_of_orderness_s=0, heartbeat_timeout_s=10, stuck_wait_s=60)
    world = World(database, rules=RULES, windows=frames)
    world.scores(0, [0.4] * 20)
    if stuck:
        world.progress(30, partition=1, heartbeat_s=30)
    world.advance(101)
    said = database.rows("SELECT DISTINCT incomplete FROM verdicts FINAL WHERE metric = 'quality.good'")
    assert said == [{"incomplete": int(stuck)}]
    assert only(world).attributes["incomplete"] is stuck


def test_all_prompt_versions_of_a_model_are_looked_at_together(database: Database) -> None:
    world = World(database, rules=RULES)
    for version in ("p1", "p2"):
        world.scores(0, [0.4] * 6, prompt_version=version)
    world.advance(60)
    problem = only(world)
    assert problem.attributes["sample_size"] == 12
    assert problem.attributes["prompt_versions"] == ["p1", "p2"]


SEVERITIES: dict[str, tuple[int, dict[str, Any], str]] = {  # by app: wrong records of 100, what settings say
    "one": (1, {"limit": 0.005}, "info"),
    "four": (4, {"limit": 0.005}, "info"),
    "five": (5, {"limit": 0.005}, "warning"),
    "many": (24, {"limit": 0.05}, "warning"),
    "a quarter": (25, {"limit": 0.05}, "critical"),
    "one that matters": (1, {"limit": 0.005, "severity": "critical"}, "critical"),
    "many that do not": (30, {"severity": "info"}, "info"),
}


def test_severity_is_by_how_many_traces_are_touched_or_as_settings_say(database: Database) -> None:
    said = tuple(RuleOverride(metric="checked.passes", app=app, **given) for app, (_, given, _) in SEVERITIES.items())
    world = World(database, rules=RULES.model_copy(update={"overrides": said}))
    for app, (wrong, _, _) in SEVERITIES.items():
        world.scores(0, [0.0] * wrong + [1.0] * (100 - wrong), evaluator="checked", key="passes", app=app)
    world.advance(60)
    assert {p.app: p.severity for p in world.problems()} == {app: found for app, (_, _, found) in SEVERITIES.items()}


def test_a_share_is_judged_more_strictly_where_it_is_of_fairness(database: Database) -> None:
    world = World(database, rules=RULES, evaluators=EVALUATORS | {"fair": FAIR})
    for evaluator in ("checked", "fair"):
        world.scores(0, [0.0] * 2 + [1.0] * 98, evaluator=evaluator, key="passes")
    world.advance(60)
    assert [(p.metric, p.attributes["limit"]) for p in world.problems()] == [("fair.passes", 0.01)]


def test_a_metric_with_both_lines_is_wrong_beyond_either_and_shows_the_furthest_first(database: Database) -> None:
    both = RuleOverride(metric="quality.good", min=0.3, max=0.9, rule="share")
    world = World(database, rules=RULES.model_copy(update={"overrides": (both,)}))
    values = {"low": 0.1, "high": 0.99, **{f"t{i}": 0.5 for i in range(8)}}
    world.store([score_row(world.at(i), name, {"good": value}) for i, (name, value) in enumerate(values.items())])
    world.advance(60)
    problem = only(world)
    assert (problem.attributes["wrong"], problem.attributes["min"], problem.attributes["max"]) == (2, 0.3, 0.9)
    assert problem.examples == ("low", "high")  # by 0.2 and by 0.09


def test_another_fingerprint_starts_anew(database: Database) -> None:
    world = World(database, rules=RuleSettings(min_sample=10, k=2, m=2, resolve_after=2))
    minute(world, 0, [0.4] * 20)
    minute(world, 1, [0.4] * 20, fingerprint="f2")
    assert [p.state for p in world.problems()] == ["pending"]  # one bad window each is not two
    minute(world, 2, [0.4] * 20, fingerprint="f2")
    problem = only(world)
    assert (problem.state, problem.attributes["fingerprint"], problem.attributes["baseline"]) == ("open", "f2", None)


def test_a_rule_that_is_taken_away_ends_its_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, [0.4] * 20)
    assert only(world).state == "open"
    off = RULES.model_copy(update={"overrides": (RuleOverride(metric="quality.good", enabled=False),)})
    world = World(database, rules=off, start=world.start)
    world.watch(61)
    assert only(world).state == "resolved"


def test_segments_have_problems_of_their_own(database: Database) -> None:
    frames = WindowSettings(out_of_orderness_s=0, segments={"tenant": ("a", "b")})
    world = World(database, rules=RULES, windows=frames)
    world.scores(0, [0.9] * 40, segments={"tenant": "a"}, name="a")
    world.scores(0, [0.2] * 10, segments={"tenant": "b"}, name="b")
    world.scores(0, [0.2] * 10, segments={"tenant": "z"}, name="z")
    world.advance(60)
    found = {(p.segment, p.segment_value): p for p in world.open()}
    assert set(found) == {("", ""), ("tenant", "b"), ("tenant", "__other__")}
    assert {example[0] for example in found["tenant", "b"].examples} == {"b"}
    assert {example[0] for example in found["tenant", "__other__"].examples} == {"z"}
    assert "tenant b" in found["tenant", "b"].description


def test_examples_are_the_worst_first(database: Database) -> None:
    world = World(database, rules=RULES)
    world.store([score_row(world.at(i), f"t{i}", {"good": i / 20}) for i in range(20)])
    world.advance(60)
    assert only(world).examples == tuple(f"t{i}" for i in range(10))


def test_a_persons_word_survives_the_jobs(database: Database) -> None:
    world = World(database, rules=RULES)
    minute(world, 0, [0.4] * 20)
    database.command(
        "INSERT INTO problem_events (problem_id, event_id, event, episode, at, actor) "
        "SELECT problem_id, 'ack', 'acked', episode, at + 1, 'ada' FROM problem_events LIMIT 1"
    )
    minute(world, 1, [0.3] * 20)
    problem = only(world)
    assert (problem.acked_by, problem.state) == ("ada", "open")
    assert problem.attributes["sample_size"] == 40


def test_overrides_that_can_never_work_are_refused() -> None:
    for override, said in (
        (RuleOverride(metric="quality.bad", min=0.5), "quality.good, quality.other"),
        (RuleOverride(metric="quality.good", min=1.5), "min = 1.5 is outside the range of quality.good"),
        (RuleOverride(metric="quality.good", min=0.5, max=0.4), "above max"),
        (RuleOverride(metric="speed.seconds", k=2), "give min or max"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_settings(RuleSettings(overrides=(override,)), EVALUATORS)
