"""Questions asked again and answered otherwise, as the tables have them: told where many are, with pairs of traces."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragtide.drift.robustness.answer_agreement import AnswerAgreement
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators import registry
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import LIVE, PROBE, EmbeddingRow
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from tests.drift.world import World, score_row, trace_row
from tests.stream.pipe.records import record

pytestmark = pytest.mark.clickhouse
RULES = RuleSettings(update_every_s=0)
MINILM = "all-MiniLM-L6-v2@1"
SAME, OTHER = ["eur:1"], ["eur:2"]
NEAR, FAR = [127, 0], [0, 127]


def ask(
    world: World,
    questions: Iterable[Sequence[Sequence[Any]]],
    name: str = "q",
    encoder: str = MINILM,
    second: float = 0,
    **fields: Any,
) -> None:
    """Each question's answers, a second apart, live and by probes by turns; an answer is claims, a vector or both."""
    traces, embeddings = [], []
    for number, answers in enumerate(questions):
        for i, answer in enumerate(answers):
            scored = score_row(world.at(second + i), f"{name}{number}-{i}", {}, run_id=(LIVE, PROBE)[i % 2], **fields)
            trace = trace_row(scored)._replace(question_hash=f"{name}{number}")
            claims = [one for one in answer if isinstance(one, str)]
            vector = [one for one in answer if isinstance(one, int)]
            traces.append(trace)
            embeddings.append(EmbeddingRow(*trace[:6], encoder, [1.0, 0.0], answer=vector, answer_claims=claims))
    world.database.insert("traces", traces)
    world.database.insert("embeddings", embeddings)


def check(world: World, ahead: timedelta = timedelta(), rules: RuleSettings = RULES) -> list[str]:
    events = world.check(AnswerAgreement(), datetime.now(UTC) + ahead, rules).events
    return [f"{event.event} {event.model}" for event in events]


def newest_row(world: World, metric: str) -> dict[str, Any]:
    """As the dashboard has it."""
    row: dict[str, Any] = world.database.rows(
        "SELECT * FROM repeated_questions FINAL WHERE metric = {metric:String} ORDER BY time DESC LIMIT 1",
        {"metric": metric},
    )[0]
    return row


def test_many_questions_whose_answers_disagree_are_one_problem_until_they_are_few(database: Database) -> None:
    world = World(database)
    ask(world, [[SAME, SAME, OTHER]] * 4)
    assert check(world) == [], "twelve answers are too few"
    ask(world, [[SAME, SAME, OTHER]] * 6, name="r")
    ask(world, [[SAME] * 4] * 10, name="s")
    ask(world, [[SAME, OTHER]] * 20, name="t")
    assert check(world) == ["opened m1"]
    world.elect()
    assert check(world) == []
    (problem,) = world.open()
    assert (problem.type, problem.aspect, problem.metric) == ("stability", "inconsistency", "answers.agreement")
    known = problem.attributes
    assert (known["wrong"], known["sample_size"], known["answers"]) == (10, 20, 70)
    assert (known["compared"], known["by"]) == ("answers", {"claims": 10})
    assert known["pairs"][0] == {"by": "claims", "odd": "q0-2", "other": "q0-1"}
    assert problem.examples[:2] == ("q0-2", "q0-1")
    assert "answers to 10 of 20 repeated questions conflict: 10 in figures" in problem.description
    row = newest_row(world, "answers.agreement")
    assert (row["questions"], row["inconsistent"], row["answers"], row["allowed"]) == (20, 10, 70, 0.2)
    assert row["pairs"][0] == {"by": "claims", "odd": "q0-2", "other": "q0-1"}
    ask(world, [[SAME] * 3] * 40, name="u")
    assert check(world) == ["resolved m1"], "10 of 60 are not above the limit"


def test_answers_of_other_prompts_models_and_encoders_never_compare(database: Database) -> None:
    world = World(database)
    changes: tuple[dict[str, Any], ...] = ({"prompt_version": "p2"}, {"model": "m2"})
    for fields in changes:
        name = next(iter(fields))
        ask(world, [[SAME] * 4] * 20, name=name)
        ask(world, [[OTHER] * 4] * 20, name=name, **fields)
    ask(world, [[NEAR] * 3 + [FAR]] * 20, name="v", encoder="unmeasured@1")
    assert check(world) == []


def test_answers_that_speak_of_something_else_and_refusals_among_answers(database: Database) -> None:
    world = World(database)
    ask(world, [[NEAR, NEAR, FAR]] * 20, model="far")
    ask(world, [[NEAR] * 3] * 20, name="r", model="refusing")
    ask(world, [[NEAR] * 3] * 20, name="s", model="same")
    scored = [
        score_row(world.at(i), f"{name}{number}-{i}", {"unsuccessful": float(name == "r" and i == 1)},
                  evaluator="unsuccessful_requests", run_id=(LIVE, PROBE)[i % 2])
        for name in "rs" for number in range(20) for i in range(3)
    ]  # fmt: skip
    world.database.insert("scores", scored)
    assert sorted(check(world)) == ["opened far", "opened refusing"]
    by_model = {problem.model: problem.attributes for problem in world.open()}
    assert by_model["far"]["by"] == {"meaning": 20}
    assert by_model["refusing"]["by"] == {"refusal": 20}
    assert by_model["refusing"]["pairs"][0]["odd"].endswith("-1")


def test_switched_off_nothing_is_told_and_what_was_told_is_over(database: Database) -> None:
    world = World(database)
    ask(world, [[SAME, SAME, OTHER]] * 20)
    assert check(world) == ["opened m1"]
    app = world.open()[0].app
    off = RuleSettings.model_validate({"update_every_s": 0, "apps": {app: {"compare_answers": False}}})
    assert check(world, rules=off) == ["resolved m1"]


def test_only_the_last_answers_count_and_nothing_older_than_a_day(database: Database) -> None:
    world = World(database)
    ask(world, [[OTHER, *[SAME] * 10]] * 20)
    assert check(world) == []
    ask(world, [[SAME, SAME, OTHER]] * 40, name="r")
    assert check(world) == ["opened m1"]
    assert check(world, ahead=timedelta(days=2)) == ["resolved m1"]


def test_from_the_topic_to_the_problem(database: Database) -> None:
    """Through the pipeline of a lane that has an encoder, and the sink."""
    world = World(database)
    settings = Settings.model_validate({"evaluators": {"enabled": ["unsuccessful_requests"]}})
    encoder = HashingEncoder(8)
    plan = prepare(registry.load(), settings.evaluators, None, encoder)
    pipeline = Pipeline(plan.prepared, Resources(encoder), settings, lane=None, timely=False)
    said = ["It takes 14 days.", "Two weeks at most.", "You have 30 days."]
    now_ms = int(world.at(0).timestamp() * 1000)
    records = [
        record(trace_id=f"t{number}-{i}", offset=3 * number + i, time=world.at(i).isoformat(), timestamp=now_ms,
               question=f"How long does {number} take?", answer=text)
        for number in range(20) for i, text in enumerate(said)
    ]  # fmt: skip
    ClickHouseSink(database).write(pipeline.process(records).block)
    assert check(world) == ["opened small-2"]
    (problem,) = world.open()
    assert problem.attributes["by"] == {"claims": 20}
    assert {one["odd"][-2:] for one in problem.attributes["pairs"]} == {"-2"}
