"""Which traces are scored, and with which probability: shares by app and segment, first traces, and errors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ragtide.drift.windows import weight_parts
from ragtide.evaluators import registry
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.calls import OVER_BUDGET, THROTTLED, Conversation, Done, JudgeCall, JudgeUse, Section
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.judge.replies import Texts
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, only_companions, prepare
from ragtide.evaluators.prediction_powered import add_sums, estimate, parts_of, sums_of
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Lane, Metric, Need, NoParams, Shared, evaluator
from ragtide.sinks.rows import ScoreRow
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.estimation import stands_for_others
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sampling import UnsureSettings
from ragtide.stream.worker.lane import limits_of
from tests.evaluators.test_prediction_powered import Numbers, Traffic, coverage, equal, everyone, width, worlds
from tests.stream.pipe.records import AT_MS, clock, record

HOUR_S = 3600


@dataclass(frozen=True)
class Answer:
    answer: str


@evaluator(
    "length",
    version=1,
    domain="generation",
    method="rule",
    inputs=Answer,
    metrics=[Metric("n", high=1e9, primary=True)],
)
def length(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
    """Characters."""
    return [Scored({"n": float(len(row.answer))}) for row in rows]


def _converse(row: Answer, shared: Shared, params: NoParams) -> Conversation[Outcome]:
    [said] = yield [JudgeCall("statements", (Section("text", row.answer),), Texts)]
    return Scored({"n": float(len(said.texts))})


@evaluator(
    "listed",
    version=1,
    domain="generation",
    method="judge",
    per_record=True,
    inputs=Answer,
    metrics=[Metric("n", high=1e9, primary=True)],
    needs={Need.JUDGE},
    judge=JudgeUse(("statements",), _converse),
)
def listed(row: Answer, shared: Shared, params: NoParams) -> Outcome:
    """Statements that a judge lists."""
    return shared.judge(_converse(row, shared, params))


class LimitedJudge(HashingJudge):
    """Replies to few traces: then the money, or the room of the minute, is used up."""

    def submit(self, call: JudgeCall, asker: Any, done: Done) -> None:
        if len(self.calls) >= 2:
            done(OVER_BUDGET if "even" in str(call.sections[0].text) else THROTTLED)
        else:
            super().submit(call, asker, done)


def pipeline(sampling: Mapping[str, Any], made: Any = length, resources: Resources | None = None) -> Pipeline:
    settings = Settings.model_validate({"sampling": sampling})
    lane = made.lane
    plan = [PreparedEvaluator(made, NoParams(), "f", ())]
    return Pipeline(plan, resources or Resources(), settings, lane=lane, clock=clock)


def scores(sampling: Mapping[str, Any], records: Sequence[Any], **how: Any) -> list[ScoreRow]:
    return pipeline(sampling, **how).process(records).block.scores


def many(number: int = 1000, **changes: Any) -> list[Any]:
    return [record(trace_id=f"trace-{at}", offset=at, **changes) for at in range(number)]


def share(rows: Sequence[ScoreRow]) -> float:
    return sum(row.status == "scored" for row in rows) / len(rows)


def test_the_first_rule_that_matches_holds_and_its_probability_is_stored() -> None:
    rules = [
        {"app": "docs", "segments": {"tenant": "acme"}, "rate": 0.5},
        {"app": "docs", "rate": 0.2},
        {"evaluators": ["other"], "rate": 0.9},
    ]
    sampling = {"rules": rules, "lanes": {"fast": 0.1}}
    for changes, weight, near in (
        ({"segments": {"tenant": "acme", "region": "eu"}}, 2.0, 0.5),
        ({"segments": {"tenant": "other"}}, 5.0, 0.2),
        ({"app": "shop"}, 10.0, 0.1),
    ):
        rows = scores(sampling, many(**changes))
        assert {row.weight for row in rows} == {weight}
        assert share(rows) == pytest.approx(near, abs=0.05)  # 3 standard deviations and more
        assert {row.reason for row in rows if row.status != "scored"} == {"not_sampled"}


def test_the_first_traces_of_an_hour_with_each_value_are_scored() -> None:
    tenants = ["common"] * 50 + ["rare", "rare", "rare"]
    records = [
        record(
            trace_id=f"t-{at}",
            offset=at,
            time=AT_MS / 1000 - (1 - at // 53) * HOUR_S,
            segments={"tenant": tenants[at % 53]},
        )
        for at in range(106)
    ]
    made = pipeline({"lanes": {"fast": 0.0001}, "first_per_hour": {"tenant": 2}})
    rows = made.process(records).block.scores
    scored = [row.trace_id for row in rows if row.status == "scored"]
    assert scored == [f"t-{at}" for at in (0, 1, 50, 51, 53, 54, 103, 104)]
    assert {row.weight for row in rows if row.trace_id in scored} == {1.0}
    assert {round(row.weight) for row in rows if row.trace_id not in scored} == {10_000}
    again = made.process(records).block.scores
    assert [row.trace_id for row in again if row.status == "scored"] == scored, "also when they are read again"


def test_a_trace_with_an_error_is_scored_for_certain_unless_the_evaluator_is_off() -> None:
    broken = many(50, error={"type": "Timeout"})
    always = {"always": {"errors": True}}
    rows = scores({"lanes": {"fast": 0.01}, **always}, broken)
    assert {(row.status, row.weight) for row in rows} == {("scored", 1.0)}
    rows = scores({"lanes": {"fast": 0.0}, **always}, broken)
    assert {(row.status, row.weight) for row in rows} == {("sampled_out", 0.0)}
    assert share(scores({"lanes": {"fast": 0.01}, **always}, many(50))) < 0.2


@given(st.lists(st.floats(0.2, 1), min_size=1, max_size=4), st.integers(1, 40))
def test_weights_of_scored_traces_add_up_to_the_traffic(rates: list[float], size: int) -> None:
    """Within five standard deviations."""
    rules = [{"segments": {"part": str(at)}, "rate": rate} for at, rate in enumerate(rates)]
    records = [
        record(trace_id=f"{size}-{at}", offset=at, segments={"part": str(at % len(rates))}) for at in range(size * 10)
    ]
    rows = scores({"rules": rules}, records)
    variance = sum(row.weight - 1 for row in rows)
    total = sum(row.weight for row in rows if row.status == "scored")
    assert abs(total - len(rows)) <= 5 * variance**0.5 + 1e-6


def test_a_trace_beyond_the_limits_of_judges_is_stored_with_the_limit_and_its_probability() -> None:
    records = [
        record(trace_id=f"t-{at}", offset=at, answer=f"Answer {at} is {'odd' if at % 2 else 'even'}.")
        for at in range(60)
    ]
    resources = Resources(judge=LimitedJudge())
    done = pipeline({"lanes": {"judge": 0.5}}, listed, resources).process(records)
    statuses = {(row.status, row.reason) for row in done.block.scores}
    assert statuses == {
        ("scored", ""),
        ("sampled_out", "not_sampled"),
        ("sampled_out", "over_budget"),
        ("sampled_out", "throttled"),
    }
    assert {row.weight for row in done.block.scores} == {2.0}
    assert done.outcomes["listed", "scored"] == 2


@evaluator(
    "odd",
    version=1,
    domain="generation",
    method="rule",
    inputs=Answer,
    metrics=[Metric("odd", better="lower", primary=True)],
)
def odd(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
    """1 for an odd answer; not applicable to an answer that does not say."""
    for row in rows:
        yield (
            NotApplicable("unknown")
            if "even" not in row.answer and "odd" not in row.answer
            else Scored({"odd": float("odd" in row.answer)})
        )


def estimated(
    records: Sequence[Any], sampling: Mapping[str, Any], resources: Resources | None = None
) -> list[ScoreRow]:
    judge = {"judge": {"companions": {"listed.n": "odd.odd"}}}
    settings = Settings.model_validate({"sampling": sampling, "evaluators": judge})
    plan, companions = ([PreparedEvaluator(one, NoParams(), "f", ())] for one in (listed, odd))
    made = Pipeline(
        plan, resources or Resources(judge=HashingJudge()), settings, lane="judge", companions=companions, clock=clock
    )
    return made.process(records).block.scores


def parity(number: int) -> list[Any]:
    words = ("even", "odd", "neither")
    return [record(trace_id=f"t-{at}", offset=at, answer=f"Answer {at} is {words[at % 3]}.") for at in range(number)]


def test_every_row_of_a_judge_carries_the_companion_and_judged_ones_the_score_too() -> None:
    rows = estimated(parity(300), {"lanes": {"judge": 0.25}})
    assert {row.evaluator for row in rows} == {"listed"}, "a companion has no rows in this lane"
    cheap = {"even": 0.0, "odd": 1.0, "neither": 0.5}
    for at, row in enumerate(rows):
        score = row.metrics.get("n")
        f = cheap[("even", "odd", "neither")[at % 3]]
        parts = parts_of("n", f, 4.0, judged=score is not None, score=score)
        assert row.parts == (parts if score is None else {**parts, **weight_parts(listed.metrics[0], score, 4.0)})
    made = estimate(add_sums(sums_of("n", row.parts) for row in rows))
    assert made is not None
    assert made.traces == 300
    assert made.scored == sum(row.status == "scored" for row in rows)
    assert made.plain.value == pytest.approx(fmean(row.metrics["n"] for row in rows if row.metrics))


def test_a_trace_that_a_limit_left_out_counts_as_not_judged() -> None:
    rows = estimated(parity(300), {"lanes": {"judge": 0.5}}, Resources(judge=LimitedJudge()))
    made = estimate(add_sums(sums_of("n", row.parts) for row in rows))
    assert made is not None
    assert (made.traces, made.judged, made.scored) == (300, 2, 2)


def test_a_trace_that_can_never_be_judged_is_no_part_of_the_estimate() -> None:
    rules = [{"segments": {"tenant": "secret"}, "rate": 0}]
    records = [*parity(30), *many(20, segments={"tenant": "secret"})]
    rows = estimated(records, {"lanes": {"judge": 0.5}, "rules": rules})
    assert [row.parts == {} for row in rows] == [False] * 30 + [True] * 20


def test_without_a_companion_a_sampled_judge_has_the_weighted_mean_and_a_full_one_has_no_sums() -> None:
    resources = Resources(judge=HashingJudge())
    done = pipeline({"lanes": {"judge": 0.5}}, listed, resources).process(parity(100))
    made = estimate(add_sums(sums_of("n", row.parts) for row in done.block.scores))
    assert made is not None
    assert (made.power, made.mean.value) == (0.0, made.plain.value)
    assert [row.parts for row in pipeline({}, listed, resources).process(parity(3)).block.scores] == [{}] * 3


def test_a_companion_runs_only_where_a_judge_is_sampled_or_limited() -> None:
    endpoint = {"url": "http://judge/v1", "model": "m", "input_usd_per_million": 1, "output_usd_per_million": 1}
    judge = {"endpoints": {"local": endpoint}}
    limited = {**judge, "limit": {"usd_per_day": 1}}
    found = registry.load()

    def companions(lane: Lane, judge: Mapping[str, Any], **sampling: Any) -> list[str]:
        settings = Settings.model_validate(
            {"evaluators": {"enabled": ["faithfulness"], "judge": judge}, "sampling": sampling}
        )
        chosen = only_companions(found, settings.evaluators, lane, lambda one: stands_for_others(one, settings))
        return [one.evaluator.id for one in prepare(found, chosen, None, None).prepared]

    assert companions("judge", judge, lanes={"judge": 0.1}) == ["support"]
    assert companions("judge", limited) == ["support"]
    assert companions("judge", judge) == []
    assert companions("fast", judge, lanes={"judge": 0.1}) == []
    off = {**judge, "companions": {"faithfulness.faithfulness": ""}}
    assert companions("judge", off, lanes={"judge": 0.1}) == []
    for wrong in ({"faithfulness.faithfulness": "ragas.ragas"}, {"rouge.rouge_1": "support.support"}):
        with pytest.raises(ConfigError, match=r"evaluators\.judge\.companions\.(faithful|rouge)"):
            companions("judge", {**judge, "companions": wrong})


def test_traces_with_a_worse_cheap_score_are_judged_for_certain() -> None:
    rows = estimated(parity(300), {"lanes": {"judge": 0.01}, "always": {"worse_than": {"odd.odd": 0.5}}})
    assert {row.weight for row in rows[1::3]} == {1.0}
    assert {row.status for row in rows[1::3]} == {"scored"}
    assert {round(row.weight) for at, row in enumerate(rows) if at % 3 != 1} == {100}


def test_traces_whose_cheap_score_says_little_are_judged_more_often() -> None:
    """By the factor at the score, less with the distance, and never more than for certain."""
    unsure = {"odd.odd": {"at": 1.0, "within": 2.0, "times": 5}}
    rows = estimated(parity(3000), {"lanes": {"judge": 0.1}, "unsure": unsure})
    by_weight = {weight: [row for row in rows if round(row.weight, 6) == weight] for weight in (2.0, 3.333333, 10.0)}
    assert [len(some) for some in by_weight.values()] == [1000, 1000, 1000]  # scores 1 and 0, and no score
    for weight, some in by_weight.items():
        assert share(some) == pytest.approx(1 / weight, abs=0.05)
    assert {round(row.weight) for row in estimated(parity(9), {"lanes": {"judge": 0.5}, "unsure": unsure})} == {1, 2}


def test_more_calls_where_the_companion_is_unsure_give_narrower_intervals_that_hold() -> None:
    """With as many calls. The companion is the probability of a yes, mostly near 0 or 1."""
    unsure = np.vectorize(UnsureSettings(at=0.5, within=0.5, times=8).factor)

    def calibrated(rng: np.random.Generator, shape: tuple[int, int]) -> Traffic:
        cheap = rng.beta(0.2, 0.2, shape)
        return Traffic(cheap, (rng.random(shape) < cheap).astype(float), np.ones(shape, bool), 0.5)

    def more_where_unsure(traffic: Traffic) -> Numbers:
        factors: Numbers = np.asarray(unsure(traffic.cheap), np.float64)
        weighed: Numbers = factors * (0.02 / factors.mean())
        return weighed

    alike, active = worlds(calibrated, equal, everyone, 400), worlds(calibrated, more_where_unsure, everyone, 400)
    calls = [fmean(one.judged for one in some) for some in (alike, active)]
    assert calls[0] == pytest.approx(calls[1], rel=0.02)
    assert width(active) < 0.85 * width(alike)
    assert abs(coverage(active, 0.5) - 0.95) < 0.03


@pytest.mark.parametrize("lane", ["judge", "fast"])
def test_a_score_that_nothing_makes_cannot_be_unsure(lane: Lane, caplog: pytest.LogCaptureFixture) -> None:
    endpoint = {"judge": {"endpoints": {"local": {"url": "http://judge/v1", "model": "m"}}}, "disabled": ["support"]}
    sampling = {"lanes": {"judge": 0.1}, "unsure": {"support.support": {"at": 0.5, "within": 0.3}}}
    assemble(Settings.model_validate({"evaluators": endpoint, "sampling": sampling}), lane)
    sentence = "sampling.unsure: support.support has no effect, because support is off"
    assert (sentence in caplog.messages) is (lane == "judge")
    for wrong in ("ragas.ragas", "nothing"):
        bad = {"unsure": {wrong: {"at": 0.5, "within": 0.3}}}
        with pytest.raises(ConfigError, match=r"sampling\.unsure"):
            assemble(Settings.model_validate({"evaluators": endpoint, "sampling": bad}), lane)


@pytest.mark.parametrize(
    ("lane", "evaluators", "warns"),
    [
        ("judge", {}, False),
        ("judge", {"enabled": ["faithfulness"]}, False),  # it runs in the lane all the same
        ("judge", {"disabled": ["support"]}, True),
        ("fast", {"disabled": ["support"]}, False),
    ],
)
def test_a_limit_on_a_score_that_nothing_makes_is_a_warning(
    caplog: pytest.LogCaptureFixture, lane: Lane, evaluators: dict[str, Any], warns: bool
) -> None:
    endpoint = {"judge": {"endpoints": {"local": {"url": "http://judge/v1", "model": "m"}}}}
    sampling = {"lanes": {"judge": 0.1}, "always": {"worse_than": {"support.support": 0.3}}}
    assemble(Settings.model_validate({"evaluators": endpoint | evaluators, "sampling": sampling}), lane)
    sentence = "sampling.always.worse_than: support.support has no effect, because support is off"
    assert (sentence in caplog.messages) is warns


def test_the_slices_of_the_lane_judge_follow_the_highest_rate() -> None:
    endpoint = {"judge": {"endpoints": {"local": {"url": "http://judge/v1", "model": "m"}}}}

    def records(**sampling: Any) -> int:
        return limits_of(Settings.model_validate({"evaluators": endpoint, "sampling": sampling}), "judge").slice_records

    assert records(lanes={"judge": 0.1}) == 320
    unsure = {"support.support": {"at": 0.5, "within": 0.2, "times": 2}}
    assert records(lanes={"judge": 0.1}, unsure=unsure) == 160
    assert records(lanes={"judge": 0.1}, rules=[{"app": "shop", "rate": 0.5}]) == 64
