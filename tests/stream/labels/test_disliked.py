"""A thumbs-down that comes later has its trace judged, outside the sample, and biases no estimate."""

from collections.abc import Sequence
from typing import Any

import pytest

from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.prediction_powered import add_sums, estimate, parts_of, sums_of
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import NoParams
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.stream.ingest.records import Record
from ragtide.stream.labels.job import LabelJob
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from tests.stream.labels.scene import Scene
from tests.stream.pipe.test_sampling import listed, odd

pytestmark = pytest.mark.clickhouse


class JudgedScene(Scene):
    """Its lane judge asks a judge about a share of the traces, and a companion about all."""

    rate: float = 0.25
    thumbs_down: bool = True

    def restart_jobs(self) -> None:
        wants = self.thumbs_down
        args = (self.database, self.settings.kafka, 1 << 20, self.telemetry, self.send)
        self.job = LabelJob(*args, judges_disliked=wants)

    def take(self, traces: Sequence[Record]) -> None:
        super().take(traces)
        sampling = {"lanes": {"judge": self.rate}, "always": {"thumbs_down": self.thumbs_down}}
        judge = {"judge": {"companions": {"listed.n": "odd.odd"}}}
        settings = Settings.model_validate({"sampling": sampling, "evaluators": judge})
        plan, companions = ([PreparedEvaluator(one, NoParams(), "f", ())] for one in (listed, odd))
        pipeline = Pipeline(plan, Resources(judge=HashingJudge()), settings, lane="judge", companions=companions)
        ClickHouseSink(self.database).write(pipeline.process(traces).block)


class NeverJudged(JudgedScene):
    rate = 0.0


class WithoutSetting(JudgedScene):
    thumbs_down = False


def rows(scene: Scene) -> dict[str, dict[str, Any]]:
    found = scene.database.rows(
        "SELECT trace_id, status, metrics, weight, parts FROM scores FINAL WHERE evaluator = 'listed'"
    )
    return {row["trace_id"]: row for row in found}


def start(scene: Scene) -> dict[str, dict[str, Any]]:
    texts = [f"Answer {at} is {('even', 'odd', 'neither')[at % 3]}." for at in range(80)]
    scene.take([scene.trace(f"t{at}", answer=text) for at, text in enumerate(texts)])
    return rows(scene)


def test_a_late_thumbs_down_has_its_trace_judged_and_counts_in_no_estimate(database: Database) -> None:
    scene = JudgedScene(database)
    before = start(scene)
    outside = next(id_ for id_, row in before.items() if row["status"] == "sampled_out")
    inside = next(id_ for id_, row in before.items() if row["status"] == "scored")
    scene.read([scene.label(id_, verdict={"thumbs": "down"}) for id_ in (outside, inside)])
    assert scene.join() == {"sent": 2}
    scene.settle()
    after = rows(scene)
    assert (after[outside]["status"], after[outside]["weight"]) == ("scored", 0.0)
    assert after[outside]["metrics"]
    assert after[outside]["parts"] == before[outside]["parts"], "as if it had not been judged"
    assert (after[inside]["weight"], after[inside]["parts"]) == (4.0, before[inside]["parts"])
    others = before.keys() - {outside}
    assert {id_: after[id_] for id_ in others} == {id_: before[id_] for id_ in others}
    old, new = (estimate(add_sums(sums_of("n", row["parts"]) for row in some.values())) for some in (before, after))
    assert old is not None
    assert old == new
    scene.restart_jobs()
    assert scene.join() == {}


def test_it_is_judged_once_whatever_comes_after(database: Database) -> None:
    scene = JudgedScene(database)
    outside = next(id_ for id_, row in start(scene).items() if row["status"] == "sampled_out")
    scene.read([scene.label(outside, verdict={"thumbs": "down"})])
    scene.settle()
    judged = rows(scene)[outside]
    assert judged["status"] == "scored"
    scene.read([scene.label(outside, verdict={"thumbs": "up"}), scene.label(outside, verdict={"score": 5.0})])
    assert scene.join() == {}
    scene.read([scene.label(outside, expected=["x"])])
    scene.settle()
    assert rows(scene)[outside] == judged, "facts that come later leave it judged"


@pytest.mark.parametrize(
    "facts",
    [{"verdict": {"thumbs": "up"}}, {"verdict": {"thumbs": "down"}, "sample_rate": 0.5, "sample_evaluator": "listed"}],
)
def test_other_verdicts_send_nothing(database: Database, facts: dict[str, Any]) -> None:
    scene = JudgedScene(database)
    outside = next(id_ for id_, row in start(scene).items() if row["status"] == "sampled_out")
    scene.read([scene.label(outside, **facts)])
    assert scene.join() == {}


def test_without_the_setting_a_thumbs_down_sends_nothing(database: Database) -> None:
    scene = WithoutSetting(database)
    outside = next(id_ for id_, row in start(scene).items() if row["status"] == "sampled_out")
    scene.read([scene.label(outside, verdict={"thumbs": "down"})])
    assert scene.join() == {}


def test_facts_are_joined_after_the_setting_was_turned_off(database: Database) -> None:
    scene = JudgedScene(database)
    start(scene)
    scene.read([scene.label("t1", verdict={"thumbs": "down"})])
    scene.settle()
    scene.thumbs_down = False
    scene.restart_jobs()
    scene.read([scene.label("t1", expected=["x"])])
    scene.settle()
    assert scene.score("t1", "exact_match")["status"] == "scored"


def test_a_share_of_0_stays_off(database: Database) -> None:
    scene = NeverJudged(database)
    start(scene)
    scene.read([scene.label("t1", verdict={"thumbs": "down"})])
    assert scene.join() == {"sent": 1}
    scene.settle()
    assert rows(scene)["t1"]["status"] == "sampled_out"


def test_a_disliked_trace_outside_the_sample_adds_what_it_would_add_unjudged(database: Database) -> None:
    scene = JudgedScene(database)
    outside = next(id_ for id_, row in start(scene).items() if row["status"] == "sampled_out")
    cheap = {0: 0.0, 1: 1.0, 2: 0.5}[int(outside[1:]) % 3]
    scene.read([scene.label(outside, verdict={"thumbs": "down"})])
    scene.settle()
    assert rows(scene)[outside]["status"] == "scored"
    assert rows(scene)[outside]["parts"] == parts_of("n", cheap, 4.0, judged=False, score=None)
