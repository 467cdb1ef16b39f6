"""The same question asked again: well on the whole and badly once, in how many of the questions."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragtide.drift.robustness.score_consistency import ScoreConsistency
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators.spec import Metric
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE, PROBE
from tests.drift.robustness.test_answer_agreement import newest_row
from tests.drift.world import EVALUATORS, World, made, score_row, trace_row

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(update_every_s=0)
SLOW = made("slow", [Metric("seconds", high=10.0, better="lower", threshold=2.0, primary=True)])
ONCE_BAD, BAD, GOOD = (0.9, 0.9, 0.6), (0.6, 0.6, 0.6), (0.9, 0.75, 0.9)


def ask(world: World, questions: Iterable[Sequence[float]], name: str = "q", second: float = 0, **fields: Any) -> None:
    """Each question's answers, a second apart, live and by probes by turns."""
    scores, traces = [], []
    key = fields.pop("key", "good")
    for number, values in enumerate(questions):
        for i, value in enumerate(values):
            at, id_ = world.at(second + i), f"{name}{number}-{second + i:g}"
            scores.append(score_row(at, id_, {key: value}, run_id=(LIVE, PROBE)[i % 2], **fields))
            traces.append(trace_row(scores[-1])._replace(question_hash=f"{name}{number}"))
    world.database.insert("traces", traces)
    world.database.insert("scores", scores)


def check(world: World, ahead: timedelta = timedelta()) -> list[str]:
    events = world.check(ScoreConsistency(), datetime.now(UTC) + ahead, RULES).events
    return [f"{event.event} {event.metric}" for event in events]


def test_many_inconsistent_questions_are_one_problem_until_they_are_few(database: Database) -> None:
    world = World(database)
    ask(world, [ONCE_BAD] * 3 + [(0.9, 0.1)] * 20)
    assert check(world) == [], "nine answers are too few, and two of a question are no look at it"
    ask(world, [ONCE_BAD] * 17 + [BAD] * 10 + [GOOD] * 10, name="r")
    assert check(world) == ["opened quality.good"]
    world.elect()
    assert check(world) == []
    (problem,) = world.open()
    assert (problem.type, problem.aspect, problem.severity) == ("stability", "inconsistency", "critical")
    known = problem.attributes
    assert (known["wrong"], known["sample_size"], known["answers"], known["compared"]) == (20, 40, 120, "scores")
    assert set(problem.examples[0::2]) < {f"{name}{i}-2" for name in "qr" for i in range(20)}, "the worst answers"
    row = newest_row(world, "quality.good")
    assert (row["questions"], row["inconsistent"], row["answers"]) == (40, 20, 120)
    assert {one["by"] for one in row["pairs"]} == {"score"}
    ask(world, [GOOD] * 60, name="s")
    assert check(world) == ["resolved quality.good"], "20 of 100 are not above the limit"


def test_another_prompt_or_version_of_the_evaluator_is_no_inconsistency(database: Database) -> None:
    world = World(database)
    for fields in ({"prompt_version": "p2"}, {"fingerprint": "f2"}, {"model": "m2"}):
        name = f"{next(iter(fields))}-"
        ask(world, [(0.9,) * 4] * 20, name=name)
        ask(world, [(0.6,) * 4] * 20, name=name, second=10, **fields)
    assert check(world) == []


def test_metrics_that_are_better_low_and_only_the_last_answers_count(database: Database) -> None:
    world = World(database, evaluators={**EVALUATORS, "slow": SLOW})
    ask(world, [(3.0, *[1.0] * 10)] * 12, key="seconds", evaluator="slow")
    assert check(world) == [], "the eleventh answer from the end"
    ask(world, [(1.0, 3.0, 2.0)] * 12, name="r", key="seconds", evaluator="slow")
    assert check(world) == ["opened slow.seconds"]
    (problem,) = world.open()
    assert (problem.attributes["wrong"], problem.attributes["sample_size"]) == (12, 24)
    assert problem.attributes["pairs"][0] == {"worst": "r0-1", "best": "r0-0"}
    assert check(world, ahead=timedelta(days=2)) == ["resolved slow.seconds"]
