"""Planted differences between models, metrics and labels are stated with what the values themselves give."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import ttest_ind

from ragtide.drift.settings import JobSettings
from ragtide.evaluators.builtin.agent_sanity import agent_sanity
from ragtide.evaluators.builtin.groundedness import groundedness
from ragtide.evaluators.builtin.operations import operations
from ragtide.evaluators.spec import Metric
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ScoreRow
from ragtide.stream.labels.rows import LabelRow
from tests.drift.world import EVALUATORS, World, made, score_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

TRACES = 480
MODELS = np.array(["m1", "m2"])[np.arange(TRACES) // 6 % 2]
PROMPTS = np.array(["p1", "p2"])[np.arange(TRACES) // 12 % 2]
TENANTS = np.array(["b", "a", "a"])[np.arange(TRACES) % 3]
LANGUAGES = np.array(["fr", "en"])[np.arange(TRACES) % 2]
WEAK = (TENANTS == "b") & (LANGUAGES == "fr")
RNG = np.random.default_rng(7)
GOOD = np.where(MODELS == "m1", 0.92, 0.87) + RNG.uniform(-0.05, 0.05, TRACES) - 0.3 * WEAK
PASSES = (RNG.random(TRACES) < np.where(MODELS == "m1", 0.98, 0.9)).astype(float)
ERROR = (np.random.default_rng(8).random(TRACES) < 0.06).astype(float)
SECONDS = np.exp(0.4 * RNG.standard_normal(TRACES)) * np.where(MODELS == "m1", 1.0, 2.0)
COST = 0.01 * (1 + RNG.random(TRACES)) * np.where(MODELS == "m1", 3.0, 1.0)
SUPPORT = np.linspace(0.6, 1.0, TRACES)
LIKED = RNG.random(TRACES) < np.where(np.median(GOOD) < GOOD, 0.1, 0.9)  # people like what scores low
FLAT = made("flat", [Metric("level", threshold=0.4, primary=True), Metric("best", threshold=0.4, primary=True)])
CURVED = made("curved", [Metric("near", threshold=0.1, primary=True)])
SUITE = {**EVALUATORS, **{one.id: one for one in (FLAT, CURVED, operations, groundedness, agent_sanity)}}
METRICS: Mapping[str, Sequence[Mapping[str, float]]] = {
    "quality": [{"good": value} for value in GOOD],
    "meaning": [{"near": value} for value in GOOD],
    "curved": [{"near": value**3} for value in GOOD],
    "checked": [{"passes": value} for value in PASSES],
    "leak": [{"passes": 1.0}] * TRACES,
    "flat": [{"level": 0.5, "best": 1.0}] * TRACES,
    "operations": [
        {"latency_seconds": seconds, "cost_usd": cost, "error": error}
        for seconds, cost, error in zip(SECONDS, COST, ERROR, strict=True)
    ],
}


class Told(NamedTuple):
    """One insight that was stated."""

    type: str
    description: str
    attributes: Mapping[str, Any]
    examples: Sequence[str]


def rows_of(world: World, evaluator: str) -> list[ScoreRow]:
    return [row_of(world, evaluator, i, metrics) for i, metrics in enumerate(METRICS[evaluator])]


def row_of(world: World, evaluator: str, i: int, metrics: Mapping[str, float], **more: Any) -> ScoreRow:
    segments = {"tenant": str(TENANTS[i]), "language": str(LANGUAGES[i])}
    where: dict[str, Any] = {"model": str(MODELS[i]), "prompt_version": str(PROMPTS[i]), "segments": segments}
    return score_row(at(world, i), f"t{i}", metrics, evaluator=evaluator, **where, **more)


def at(world: World, i: int) -> datetime:
    return world.at(i / 8)


def sentence(i: int) -> str:
    return json.dumps(
        [
            {"field": "answer", "start": i, "end": i + 9, "kind": "least_grounded", "score": SUPPORT[i]},
            {"field": "contexts", "start": 0, "end": 5, "chunk_id": "c", "kind": "best_support", "score": SUPPORT[i]},
        ]
    )


def label(world: World, i: int) -> LabelRow:
    thumbs = "up" if LIKED[i] else "down"
    return LabelRow(f"t{i}", at(world, i), "rag.labels", 0, i, i + 1, "", "", "", "", thumbs, None, "PRIVATE")


def insights(database: Database) -> dict[tuple[str, ...], Told]:
    """By kind, and by metric or what is compared."""
    found = {}
    for row in database.rows("SELECT * FROM insights FINAL"):
        said = json.loads(row["attributes"])
        assert row["description"].endswith(".")
        assert row["actions"]
        about = said.get("metric") or "|".join(said.get("metrics", ())) or said.get("figure") or ""
        key = (said["kind"], about, said.get("by", ""), said.get("model") or "", *said.get("segments", {}).values())
        found[key] = Told(row["type"], row["description"], said, row["examples"])
    return found


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    with fresh_database(clickhouse_server) as database:
        world = World(database, evaluators=SUITE, settings=JobSettings(insights_every_s=1))
        for evaluator in METRICS:
            world.store(rows_of(world, evaluator), SUITE[evaluator].lane, traces=evaluator == "quality")
        grounded = [
            row_of(world, "groundedness", i, {"groundedness": SUPPORT[i]}, evidence=sentence(i)) for i in range(TRACES)
        ]
        sound = [row_of(world, "agent_sanity", i, {"agent_sanity": 1.0}, parts={"artifacts": 2.0}) for i in range(20)]
        unsound = [
            row_of(world, "agent_sanity", i, {"agent_sanity": 0.5}, parts={"artifacts": 2.0, "empty": 1.0})
            for i in (20, 21)
        ]
        world.store(grounded, "model", traces=False)
        world.store([*sound, *unsound], traces=False)
        database.insert("labels", [label(world, i) for i in range(0, TRACES, 4)])
        for lane in ("fast", "model"):
            world.progress(300, lane=lane)
        world.watch(300)
        world.jobs.run_insights(world.at(300))
        yield world


@pytest.fixture(scope="module")
def told(world: World) -> dict[tuple[str, ...], Told]:
    return insights(world.database)


def test_the_best_model_by_means_has_welchs_interval(told: dict[tuple[str, ...], Told]) -> None:
    one = told["best_and_worst", "quality.good", "model", ""]
    apart = ttest_ind(GOOD[MODELS == "m1"], GOOD[MODELS == "m2"], equal_var=False)
    interval = apart.confidence_interval(0.95)
    assert one.type == "performance_comparison"
    assert (one.attributes["best"]["name"], one.attributes["worst"]["name"]) == ("m1", "m2")
    assert one.attributes["best"]["samples"] == 240
    assert one.attributes["difference_interval"] == pytest.approx([interval.low, interval.high], rel=1e-6)
    assert one.attributes["method"] == "welch"


def test_the_best_model_by_shares_has_newcombes(told: dict[tuple[str, ...], Told]) -> None:
    said = told["best_and_worst", "checked.passes", "model", ""].attributes
    assert said["method"] == "newcombe"
    assert said["best"]["mean"] == pytest.approx(PASSES[MODELS == "m1"].mean())
    assert said["difference"] == pytest.approx(PASSES[MODELS == "m1"].mean() - PASSES[MODELS == "m2"].mean())
    assert 0.02 <= said["difference_interval"][0] < said["difference"] < said["difference_interval"][1]


def test_prompt_versions_that_do_alike_are_not_told_apart(told: dict[tuple[str, ...], Told]) -> None:
    assert not [key for key in told if key[2] == "prompt_version"]


def test_speed_and_cost_are_of_successful_answers(told: dict[tuple[str, ...], Told]) -> None:
    median = told["per_answer", "median latency", "model", ""]
    slow = SECONDS[(MODELS == "m2") & (ERROR == 0)]
    assert median.type == "speed"
    assert median.attributes["greatest"]["name"] == "m2"
    assert median.attributes["greatest"]["answers"] == len(slow)
    assert median.attributes["greatest"]["value"] == pytest.approx(np.median(slow), rel=0.02)
    assert median.attributes["ratio_interval"][0] < 2 < median.attributes["ratio_interval"][1]
    cost = told["per_answer", "cost per answer", "model", ""]
    of = MODELS == "m1"
    assert cost.type == "cost"
    assert cost.attributes["greatest"]["name"] == "m1"
    assert cost.attributes["greatest"]["value"] == pytest.approx(COST[of].sum() / (ERROR[of] == 0).sum())
    assert cost.attributes["ratio_interval"][0] < 3 < cost.attributes["ratio_interval"][1]


def test_the_least_grounded_sentences_are_pointed_at(told: dict[tuple[str, ...], Told]) -> None:
    one = told["least_grounded", "groundedness.groundedness", "", ""]
    assert one.type == "accuracy"
    assert list(one.examples) == [f"t{i}" for i in range(10)]
    assert one.attributes["below"] == int((SUPPORT < 0.75).sum())
    assert one.attributes["sentences"][3] == {"trace_id": "t3", "start": 3, "end": 12, "support": SUPPORT[3]}


def test_unsound_artifacts_are_counted_by_fault(told: dict[tuple[str, ...], Told]) -> None:
    one = told["unsound_artifacts", "agent_sanity.agent_sanity", "", ""]
    assert (one.attributes["artifacts"], one.attributes["faults"]) == (44, {"empty": 2})
    assert (one.attributes["traces"], one.attributes["unsound_traces"]) == (22, 2)
    assert set(one.examples) == {"t20", "t21"}


def test_segments_are_told_alone_and_in_pairs(told: dict[tuple[str, ...], Told]) -> None:
    pair = told["segments", "", "", "", "fr", "b"].attributes
    below = (PASSES < 0.5) | (GOOD < 0.75) | (SUPPORT < 0.75)
    below[20:22] = True  # of the artifacts
    assert (pair["asked"], pair["failed"]) == (WEAK.sum(), below[WEAK].sum())
    assert ("segment", "", "", "", "b") in told


def test_a_metric_that_says_the_opposite_of_people(told: dict[tuple[str, ...], Told]) -> None:
    said = told["against_people", "quality.good", "", ""].attributes
    assert said["labelled"] == TRACES // 4
    assert said["auc_interval"][1] < 0.5
    assert said["liked"] == int(LIKED[::4].sum())
    assert not {("against_people", name, "", "") for name in ("leak.passes", "flat.level", "operations.error")} & set(
        told
    )


def test_metrics_that_tell_nothing_or_the_same(told: dict[tuple[str, ...], Told]) -> None:
    assert told["constant", "flat.level", "", ""].attributes["value"] == 0.5
    assert ("constant", "leak.passes", "", "") not in told  # a guard that found nothing
    assert ("constant", "flat.best", "", "") not in told  # no fault was there to be found
    assert ("copies", "meaning.near|quality.good", "", "") in told
    same = told["same", "curved.near|quality.good", "", ""].attributes
    assert same["rank_correlation"] == pytest.approx(1.0)
    assert same["traces"] == TRACES
    assert {key[0] for key in told if "checked" in key[1]} <= {"best_and_worst", "against_people"}


def test_stated_again_they_are_the_same_and_hold_no_word(world: World, told: dict[tuple[str, ...], Told]) -> None:
    world.elect()
    world.jobs.run_insights(world.at(310))
    assert insights(world.database) == told
    rows = world.database.rows("SELECT * FROM insights FINAL")
    assert len({row["insight_id"] for row in rows}) == len(rows)
    assert "PRIVATE" not in json.dumps(rows, default=str)
