"""A thumbs-down that comes later has its trace judged, outside the sample, and biases no estimate."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from ragtide.drift.jobs import server_time
from ragtide.evaluators.judge.calls import OVER_BUDGET, THROTTLED, Done, JudgeCall
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.outcome import Failed, NotApplicable
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.prediction_powered import Estimate, add_sums, estimate, sums_of
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import NoParams
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import LIVE
from ragtide.stream.ingest.enriched import requested_judges, resolve_enrichment
from ragtide.stream.ingest.records import Record
from ragtide.stream.job_schedule import job_schedule
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from tests.drift.world import World
from tests.stream.labels.scene import Scene
from tests.stream.pipe.test_sampling import listed, odd

pytestmark = pytest.mark.clickhouse


class ClosedJudge(HashingJudge):
    """Its endpoint does not answer, or its money is spent: `outcome` says which; None: it replies."""

    outcome: NotApplicable | Failed | None = None

    def submit(self, call: JudgeCall, asker: Any, done: Done) -> None:
        if self.outcome is None:
            super().submit(call, asker, done)
        else:
            done(self.outcome)


class JudgedScene(Scene):
    """Its lane judge asks a judge about a share of the traces. Each slice is read by a new worker."""

    rate: float = 0.25
    thumbs_down: bool = True
    first_per_hour: Mapping[str, int] = {}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.judge = ClosedJudge()

    def join(self) -> dict[str, int]:
        judges = ["listed"] if self.thumbs_down else []
        return {str(result): count for result, count in self.job.run(server_time(self.database), judges).items()}

    def take(self, traces: Sequence[Record]) -> None:
        super().take(traces)
        self.take_judge(traces)

    def take_judge(self, traces: Sequence[Record], run_id: str = LIVE) -> None:
        sampling = {"lanes": {"judge": self.rate}, "first_per_hour": dict(self.first_per_hour)}
        judge = {"judge": {"companions": {"listed.n": "odd.odd"}}}
        settings = Settings.model_validate({"sampling": sampling, "evaluators": judge})
        plan, companions = ([PreparedEvaluator(one, NoParams(), "f", ())] for one in (listed, odd))
        how: dict[str, Any] = {"lane": "judge", "companions": companions, "run_id": run_id}
        ClickHouseSink(self.database).write(
            Pipeline(plan, Resources(judge=self.judge), settings, **how).process(traces).block
        )


@pytest.mark.parametrize("is_set", [True, False])
def test_the_setting_has_the_jobs_ask_judges(database: Database, monkeypatch: pytest.MonkeyPatch, is_set: bool) -> None:
    scene = JudgedScene(database)
    before = start(scene)
    dislike(scene, outside_of(before))
    monkeypatch.setattr(f"{job_schedule.__module__}.send", lambda kafka, messages: scene.send(messages))
    settings = Settings.model_validate({"sampling": {"always": {"thumbs_down": is_set}}})
    scheduled = job_schedule(settings, database, scene.telemetry, lambda: False)
    (run,) = (run for name, _, run in scheduled if name == "labels")
    jobs = World(database, evaluators={"listed": listed, "odd": odd}).jobs
    assert run(jobs, server_time(database)).raised == is_set
    assert [requested_judges(resolve_enrichment(one)) for one in scene.enriched] == [{"listed"}] * is_set


@pytest.mark.parametrize("store_texts", ["masked", "off"])
def test_judges_cannot_score_texts_that_are_not_stored(store_texts: str) -> None:
    wrong = {"sampling": {"always": {"thumbs_down": True}}, "privacy": {"store_texts": store_texts}}
    with pytest.raises(ValidationError, match=f"thumbs_down needs privacy.store_texts = full, not {store_texts}"):
        Settings.model_validate(wrong)


class NeverJudged(JudgedScene):
    rate = 0.0


class WithoutSetting(JudgedScene):
    thumbs_down = False


def rows(scene: JudgedScene) -> dict[str, dict[str, Any]]:
    found = scene.database.rows(
        "SELECT trace_id, status, reason, metrics, weight, parts FROM scores FINAL WHERE evaluator = 'listed'"
    )
    return {row["trace_id"]: row for row in found}


def start(scene: JudgedScene) -> dict[str, dict[str, Any]]:
    texts = [f"Answer {at} is {('even', 'odd', 'neither')[at % 3]}." for at in range(80)]
    scene.take([scene.trace(f"t{at}", answer=text) for at, text in enumerate(texts)])
    return rows(scene)


def outside_of(found: Mapping[str, Mapping[str, Any]]) -> str:
    return next(id_ for id_, row in found.items() if row["status"] == "sampled_out")


def inside_of(found: Mapping[str, Mapping[str, Any]]) -> str:
    return next(id_ for id_, row in found.items() if row["weight"] == 4.0 and row["reason"] != "not_sampled")


def estimate_of(found: Mapping[str, Mapping[str, Any]]) -> Estimate | None:
    return estimate(add_sums(sums_of("n", row["parts"]) for row in found.values()))


def dislike(scene: JudgedScene, *trace_ids: str) -> None:
    scene.read([scene.label(id_, verdict={"thumbs": "down"}) for id_ in trace_ids])


def test_a_late_thumbs_down_has_its_trace_judged_and_counts_in_no_estimate(database: Database) -> None:
    scene = JudgedScene(database)
    before, traces = start(scene), scene.rows("traces")
    outside, inside = outside_of(before), inside_of(before)
    dislike(scene, outside, inside)
    assert scene.join() == {"sent": 1}, "the other one has a score"
    scene.settle()
    after = rows(scene)
    assert (after[outside]["status"], after[outside]["weight"]) == ("scored", 0.0)
    assert after[outside]["metrics"]
    assert after[outside]["parts"] == before[outside]["parts"], "as if it had not been judged"
    others = before.keys() - {outside}
    assert {id_: after[id_] for id_ in others} == {id_: before[id_] for id_ in others}
    assert scene.rows("traces") == traces, "only the judge reads it again"
    assert estimate_of(before) is not None
    assert estimate_of(before) == estimate_of(after)
    scene.restart_jobs()
    assert scene.join() == {}
    scene.reconcile()
    assert rows(scene) == after


@pytest.mark.parametrize(
    "first", [OVER_BUDGET, THROTTLED, Failed("judge_timeout", "no answer")], ids=["budget", "limit", "failed"]
)
def test_who_complains_gives_no_trace_of_the_sample_a_second_try(
    database: Database, first: NotApplicable | Failed
) -> None:
    """Else traces with complaints would be answered more often than others, and count."""
    scene = JudgedScene(database)
    scene.judge.outcome = first
    before = start(scene)
    inside = inside_of(before)
    assert before[inside]["status"] in ("failed", "sampled_out")
    scene.judge.outcome = None
    dislike(scene, inside)
    scene.settle()
    after = rows(scene)
    assert (after[inside]["status"], after[inside]["weight"]) == ("scored", 0.0)
    assert after[inside]["parts"] == before[inside]["parts"]


def test_a_try_on_request_without_an_answer_is_repeated_by_the_next_thumbs_down_alone(database: Database) -> None:
    scene = JudgedScene(database)
    outside = outside_of(start(scene))
    scene.judge.outcome = OVER_BUDGET
    dislike(scene, outside)
    scene.settle()
    assert (rows(scene)[outside]["reason"], rows(scene)[outside]["weight"]) == ("over_budget", 0.0)
    scene.judge.outcome = None
    scene.restart_jobs()
    assert scene.join() == {}
    dislike(scene, outside)
    scene.settle()
    assert rows(scene)[outside]["status"] == "scored"


@pytest.mark.parametrize("change", [{"rate": 1.0}, {"first_per_hour": {"tenant": 5}}], ids=["rate", "first"])
def test_a_trace_that_somebody_dislikes_never_enters_the_sample(database: Database, change: dict[str, Any]) -> None:
    """Also where the share was raised since, or a worker that starts anew has not seen the first traces."""
    scene = JudgedScene(database)
    segments = {"segments": {"tenant": "acme"}}
    scene.take([scene.trace(f"t{at}", answer=f"Answer {at} is odd.", **segments) for at in range(40)])
    before = rows(scene)
    outside = outside_of(before)
    for name, value in change.items():
        setattr(scene, name, value)
    dislike(scene, outside)
    scene.settle()
    after = rows(scene)
    assert (after[outside]["status"], after[outside]["weight"]) == ("scored", 0.0)
    assert "ppi.n.s" not in after[outside]["parts"]


def test_a_request_takes_the_place_of_no_first_trace(database: Database) -> None:
    scene = JudgedScene(database)
    scene.rate, scene.first_per_hour = 1e-9, {"tenant": 1}
    how = {"answer": "It is odd.", "segments": {"tenant": "acme"}, "time": scene.now_ms // 3_600_000 * 3_600_000}
    scene.take([scene.trace(f"t{at}", **how) for at in range(3)])
    dislike(scene, "t1")
    scene.join()
    waiting, scene.enriched = scene.enriched, []
    scene.take([*waiting, scene.trace("new", **how)])
    assert [rows(scene)[name]["weight"] for name in ("t0", "t1", "new")] == [1.0, 0.0, 1.0]


def test_a_complaint_before_the_judge_has_read_the_trace_waits_for_it(database: Database) -> None:
    """Else the message for judges would replace the row that the sample decides."""
    scene = JudgedScene(database)
    traces = [scene.trace(f"t{at}", answer=f"Answer {at} is odd.") for at in range(40)]
    Scene.take(scene, traces)
    dislike(scene, *(f"t{at}" for at in range(40)))
    assert scene.join() == {}
    scene.take_judge(traces)
    before = rows(scene)
    scene.settle()
    after = rows(scene)
    assert {row["status"] for row in after.values()} == {"scored"}
    assert {row["weight"] for row in after.values()} == {0.0, 4.0}
    assert estimate_of(after) == estimate_of(before)


def test_a_slice_with_a_trace_and_its_complaint_has_the_rows_of_both(database: Database) -> None:
    """A group that is set back reads both at once."""
    scene = JudgedScene(database)
    traces = [scene.trace(f"t{at}", answer=f"Answer {at} is odd.") for at in range(40)]
    scene.take(traces)
    dislike(scene, *(f"t{at}" for at in range(40)))
    scene.join()
    requests = list(scene.enriched)
    scene.settle()
    expected = rows(scene)
    database.command("TRUNCATE TABLE scores")
    scene.take_judge([*traces, *requests])
    assert rows(scene) == expected


def test_replays_and_other_lanes_leave_messages_for_judges_out(database: Database) -> None:
    scene = JudgedScene(database)
    start(scene)
    dislike(scene, *(f"t{at}" for at in range(80)))
    scene.join()
    count = database.rows("SELECT count() AS n FROM scores")
    scene.take_judge(scene.enriched, run_id="again")
    Scene.take(scene, scene.enriched)
    assert database.rows("SELECT count() AS n FROM scores") == count


def test_facts_of_a_disliked_trace_leave_it_in_the_sample(database: Database) -> None:
    """Facts have every trace evaluated again: without those that people dislike the others would count alone."""
    scene = JudgedScene(database)
    before = start(scene)
    inside, outside = inside_of(before), outside_of(before)
    scene.read([scene.label(id_, expected=["x"], verdict={"thumbs": "down"}) for id_ in (inside, outside)])
    scene.settle()
    after = rows(scene)
    assert after[inside] == before[inside]
    assert (after[outside]["status"], after[outside]["weight"]) == ("scored", 0.0)
    assert scene.score(inside, "exact_match")["status"] == "scored"


def test_it_is_judged_once_whatever_comes_after(database: Database) -> None:
    scene = JudgedScene(database)
    outside = outside_of(start(scene))
    dislike(scene, outside)
    scene.settle()
    scored = rows(scene)[outside]
    assert scored["status"] == "scored"
    calls = len(scene.judge.calls)
    scene.read([scene.label(outside, verdict={"thumbs": "up"}), scene.label(outside, verdict={"score": 5.0})])
    dislike(scene, outside)
    assert scene.join() == {}
    assert len(scene.judge.calls) == calls
    scene.read([scene.label(outside, expected=["x"])])
    scene.settle()
    assert rows(scene)[outside] == scored, "facts that come later leave it judged"


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
    assert (rows(scene)["t1"]["status"], scene.judge.calls) == ("sampled_out", [])
