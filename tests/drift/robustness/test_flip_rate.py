"""Perturbed traces against their originals on the real engine, however late, often and wherever those come."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from ragtide.drift.problems.report import CheckResult
from ragtide.drift.robustness.flip_rate import FlipRate
from ragtide.drift.settings import RuleOverride, RuleSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE, PROBE, ScoreRow, TraceRow
from tests.drift.world import World, score_row, trace_row

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(update_every_s=0)
TECHNIQUES = [{"technique": "typo", "intensity": 0.1}, {"technique": "paraphrase"}]


class ScoredTrace(NamedTuple):
    trace: TraceRow
    scores: list[ScoreRow]


def scored_trace(
    world: World, trace_id: str, value: float, *, second: float = 0, case: str = "", **fields: Any
) -> ScoredTrace:
    score = score_row(world.at(second), trace_id, {"good": value}, **fields)
    return ScoredTrace(trace_row(score)._replace(test_case=json.dumps({"key": case}) if case else "{}"), [score])


def perturbed_trace(
    world: World, trace_id: str, value: float, *, of: str = "", case: str = "", **fields: Any
) -> ScoredTrace:
    trace, scores = scored_trace(world, trace_id, value, case=case, run_id=fields.pop("run_id", PROBE), **fields)
    said = {"type": "perturbation_of", "techniques": TECHNIQUES, **({"trace_id": of} if of else {"test_case": case})}
    return ScoredTrace(trace._replace(relationships=json.dumps([said])), scores)


def store(world: World, some: Iterable[ScoredTrace]) -> None:
    some = list(some)
    world.database.insert("traces", [one.trace for one in some])
    world.database.insert("scores", [score for one in some for score in one.scores])


def pairs(world: World, changes: Iterable[tuple[float, float]], **fields: Any) -> list[ScoredTrace]:
    """Live and probed originals by turns."""
    made = []
    for i, (before, after) in enumerate(changes):
        made.append(scored_trace(world, f"o{i}", before, run_id=(LIVE, PROBE)[i % 2], **fields))
        made.append(perturbed_trace(world, f"p{i}", after, of=f"o{i}", **fields))
    return made


def check(world: World, rules: RuleSettings = RULES, ahead: timedelta = timedelta()) -> CheckResult:
    return world.check(FlipRate(), datetime.now(UTC) + ahead, rules)


def event_names(seen: CheckResult) -> list[str]:
    return [f"{event.event} {event.metric} {event.segment_value}" for event in seen.events]


def newest_version(database: Database) -> int:
    """Of the rows that were stored last."""
    return int(database.rows("SELECT max(version) AS newest FROM flips")[0]["newest"])


def outcomes(database: Database) -> dict[str, str]:
    return {row["trace_id"]: row["outcome"] for row in database.rows("SELECT trace_id, outcome FROM flips FINAL")}


# 12 of 40: ten passes became fails, the first by the furthest way, and two fails passes; 0.75 is the line, and good.
CHANGES = [(0.9, 0.1), *[(0.9, 0.7)] * 9, *[(0.5, 0.8)] * 2, *[(0.9, 0.75)] * 20, *[(0.2, 0.3)] * 8]


def test_flips_are_one_problem_of_their_techniques(database: Database) -> None:
    world = World(database)
    rows = pairs(world, CHANGES, segments={"topic": "prices"})
    store(world, rows)
    assert event_names(check(world, RULES.model_copy(update={"flip_limit": 0.19}))) == [], (
        "below the whole interval it is not"
    )
    found = check(world)
    assert event_names(found) == ["opened quality.good typo 0.1 > paraphrase"]
    (problem,) = world.open()
    assert (problem.type, problem.severity, problem.aspect, problem.segment) == (
        "robustness",
        "critical",
        "flip",
        "techniques",
    )
    known = problem.attributes
    assert (known["value"], known["sample_size"], known["pass_to_fail"], known["fail_to_pass"]) == (0.3, 40, 10, 2)
    assert known["interval"] == pytest.approx([0.18075, 0.45430], abs=5e-5)  # worked by hand in test_outcomes
    assert known["topics"] == [
        {"topic": "prices", "sample_size": 40, "value": 0.3, "interval": known["interval"]},
    ]
    assert known["pairs"][0] == {"original": "o0", "perturbed": "p0"}
    assert problem.examples[:2] == ("o0", "p0")
    assert "Flip rate: 30 % (95 % interval 18.1 to 45.4 %), above the limit of " in problem.description
    kept = outcomes(database)
    store(world, rows)
    world.elect()
    assert event_names(check(world)) == [], "whoever looks again at what came again finds nothing new"
    assert outcomes(database) == kept
    assert len(kept) == 40
    store(world, [perturbed_trace(world, f"p{i}", 0.9, of=f"o{i}") for i in range(10)])  # sent again
    found = check(world)
    assert event_names(found) == ["resolved quality.good typo 0.1 > paraphrase"]
    assert sorted(outcomes(database)) == sorted(kept)


def test_an_original_may_come_late_or_never_and_what_did_not_change_is_not_looked_at(database: Database) -> None:
    world = World(database)
    rows = pairs(world, CHANGES[:12] * 3)
    late = [one for one in rows if one.trace.trace_id.startswith("o")]
    store(world, [one for one in rows if one not in late])
    assert event_names(check(world)) == []
    assert outcomes(database) == {}
    database.command("ALTER TABLE scores UPDATE ingested_at = ingested_at - 3600 WHERE 1 SETTINGS mutations_sync = 1")
    store(world, late[:-2])
    assert event_names(check(world)) == ["opened quality.good typo 0.1 > paraphrase"]
    (problem,) = world.open()
    assert (problem.attributes["sample_size"], problem.attributes["unpaired"]) == (34, 2)
    assert problem.attributes["coverage"] == pytest.approx(34 / 36)
    later = timedelta(hours=2)
    check(world, ahead=later)
    stored = newest_version(world.database)
    assert check(world, ahead=later).events == []
    assert newest_version(world.database) == stored, "pairs are compared again only where their scores changed"
    assert event_names(check(world, ahead=timedelta(days=2))) == ["resolved quality.good typo 0.1 > paraphrase"]


def test_other_lines_judge_every_pair_anew(database: Database) -> None:
    world = World(database)
    store(world, pairs(world, [(0.9, 0.7)] * 30))
    assert event_names(check(world)) == ["opened quality.good typo 0.1 > paraphrase"]
    lenient = RULES.model_copy(update={"overrides": (RuleOverride(metric="quality.good", min=0.6),)})
    assert event_names(check(world, lenient)) == ["resolved quality.good typo 0.1 > paraphrase"]
    assert set(outcomes(database).values()) == {"same"}


def test_too_few_pairs_say_nothing_and_fails_that_pass_are_no_high_problem(database: Database) -> None:
    world = World(database)
    store(world, pairs(world, [(0.1, 0.9)] * 29))
    assert event_names(check(world)) == []
    store(world, [scored_trace(world, "o", 0.1), perturbed_trace(world, "p", 0.9, of="o")])
    assert event_names(check(world)) == ["opened quality.good typo 0.1 > paraphrase"]
    assert [one.severity for one in world.open()] == ["warning"]


def test_what_cannot_be_told_is_counted_and_no_pair(database: Database) -> None:
    world = World(database)
    failed = scored_trace(world, "o0", 0.0)
    failed = failed._replace(scores=[failed.scores[0]._replace(status="failed", reason="timeout", metrics={})])
    store(world, [failed, perturbed_trace(world, "p0", 0.1, of="o0")])
    store(world, [scored_trace(world, "o1", 0.9, fingerprint="f2"), perturbed_trace(world, "p1", 0.1, of="o1")])
    store(world, [scored_trace(world, "o2", 0.9, model="m2"), perturbed_trace(world, "p2", 0.1, of="o2")])
    store(world, [scored_trace(world, "o3", 0.9), perturbed_trace(world, "p3", 0.1, of="o3")])
    check(world)
    assert outcomes(database) == {"p0": "unknown", "p1": "unknown", "p2": "unknown", "p3": "worse"}


def test_an_original_of_the_same_test_case_is_the_nearest_of_the_same_model(database: Database) -> None:
    world = World(database)
    store(
        world,
        [
            scored_trace(world, "far", 0.1, second=-3000, case="k1"),
            scored_trace(world, "near", 0.9, second=-60, case="k1", run_id=PROBE),
            scored_trace(world, "other-model", 0.1, second=-1, case="k1", model="m2"),
            perturbed_trace(world, "p", 0.2, case="k1"),
            perturbed_trace(world, "alone", 0.2, case="k2"),
        ],
    )
    check(world)
    assert database.rows("SELECT trace_id, original_id, outcome FROM flips FINAL") == [
        {"trace_id": "p", "original_id": "near", "outcome": "worse"}
    ]


def test_a_trace_sent_again_as_no_perturbed_one_leaves_the_table(database: Database) -> None:
    world = World(database)
    store(world, pairs(world, [(0.9, 0.1)] * 2))
    check(world)
    store(world, [scored_trace(world, "p0", 0.1, run_id=PROBE)])
    check(world)
    assert outcomes(database) == {"p1": "worse"}


def test_probes_move_no_live_window_and_raise_nothing_there(database: Database) -> None:
    world = World(database)
    for minute in range(4):
        world.scores(60 * minute, [0.1] * 20, run_id=PROBE)
    world.advance(240)
    assert world.open() == []
    runs = database.rows("SELECT run_id, sum(scored) AS n FROM windows FINAL WHERE size_s = 60 GROUP BY run_id")
    assert [(row["run_id"], row["n"] > 0) for row in runs] == [("probe", True)]
