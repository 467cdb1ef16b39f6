"""Planted weak points are found with their figures; where nothing is weak nothing is said."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta

import numpy as np
import pytest

from ragtide.drift.insights.failing_sample import SampledTrace, TraceSample
from ragtide.drift.insights.failure_clusters import failing_groups, shared_traits
from ragtide.drift.insights.weak_topics import find_weak_topics
from ragtide.drift.job_history import RunResult
from ragtide.drift.settings import JobSettings
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import EmbeddingRow
from tests.drift.topics.synthetic import around, directions
from tests.drift.world import World, score_row, text_row

TOPICS = directions(4)


def answered(failing: Sequence[bool], first: int = 0, **traits: str) -> list[SampledTrace]:
    return [
        SampledTrace(f"t{first + i}", first + i, ("q.good",) if fails else (), traits, first + i)
        for i, fails in enumerate(failing)
    ]


def every(nth: int, count: int) -> list[bool]:
    return [i % nth == 0 for i in range(count)]


def sample(weak: int) -> TraceSample:
    """200 questions of each of four topics; one in 7 fails everywhere, and of the topic `weak` three in 5."""
    vectors = np.concatenate([around(one, 200, seed, 0.05) for seed, one in enumerate(TOPICS)])
    found: list[SampledTrace] = []
    for topic in range(4):
        failing = [i % 5 < 3 for i in range(200)] if topic == weak else every(7, 200)
        found += answered(failing, 200 * topic, topic=f"topic {topic}")
    return TraceSample("shop", "prod", found, vectors)


def test_a_planted_group_is_found_and_told_of_the_half_that_did_not_find_it() -> None:
    (group,) = failing_groups(sample(weak=2))
    part = group.part
    # Of the 200 the odd half judges: i % 10 in (1, 5, 7) of (1, 3, 5, 7, 9) fails. The group reaches most.
    assert 60 <= part.share.n <= 100
    assert part.share.value == pytest.approx(0.6, abs=0.05)
    assert part.rest.value == pytest.approx(0.14, abs=0.05)
    low, high = part.figures["failed_share_interval"]
    assert low < part.share.value < high
    assert part.excess.low > 0.3
    assert {one.traits["topic"] for one in group.failing} == {"topic 2"}
    assert [(trait.name, trait.value) for trait in group.traits] == [("topic", "topic 2")]


def test_where_all_fail_alike_there_is_no_group() -> None:
    """Clusters of failures are there, four of them; none fails more often than the rest."""
    assert failing_groups(sample(weak=-1)) == []


def test_few_failures_are_no_group() -> None:
    few = answered([i < 15 for i in range(40)])
    assert failing_groups(TraceSample("shop", "prod", few, around(TOPICS[0], 40, 1))) == []


def test_what_failures_share_is_more_common_among_them_for_sure() -> None:
    failing = answered([True] * 40, tenant="a", region="eu")
    fine = answered([False] * 40, 100, tenant="b", region="eu")
    fine += answered([False] * 20, 200, tenant="a", region="eu")
    (trait,) = shared_traits(failing, fine)  # all are of the same region
    assert (trait.name, trait.value, trait.failing, trait.others) == ("tenant", "a", (40, 40), (20, 60))
    assert trait.lift.value == pytest.approx((40.5 / 40.5) / (20.5 / 60.5))
    assert 1 < trait.lift.low < trait.lift.value < trait.lift.high


def test_chance_shares_nothing() -> None:
    """100 tenants at random: without regard to how many are tried, five would look shared at p = 0.05."""
    rng = np.random.default_rng(5)
    answers = [
        SampledTrace(str(i), i, ("q.good",) if rng.random() < 0.3 else (), {"tenant": str(rng.integers(100))})
        for i in range(5_000)
    ]
    failing = [one for one in answers if one.failed_metrics]
    assert shared_traits(failing, [one for one in answers if not one.failed_metrics]) == []


def test_a_topic_that_is_weak_in_one_kind_of_question() -> None:
    def asked(count: int, fails: int, topic: str, kind: str) -> list[SampledTrace]:
        return [
            SampledTrace(
                f"{topic}{kind}{i}", i, ("q.good",) if i < fails else (), {"topic": topic, "question_type": kind}
            )
            for i in range(count)
        ]

    answers = [
        *asked(50, 40, "refund", "why"),
        *asked(200, 20, "refund", "how"),
        *asked(250, 25, "order", "why"),
        *asked(19, 19, "rare", "why"),
    ]
    first, second = find_weak_topics(answers)
    assert (first.name, first.share, first.rest) == (("refund", "why"), (40, 50), (64, 469))
    assert (second.name, second.share) == (("refund", ""), (60, 250))
    assert first.excess.low > second.excess.low > 0
    refund = TraceSample("shop", "prod", answers, TOPICS)
    assert refund.examples({"topic": "refund", "question_type": "why"})[0] == "refundwhy0"


def test_without_topics_there_is_nothing_to_say() -> None:
    assert find_weak_topics(answered(every(2, 50))) == []


def store(world: World, at: int, question: str, vectors: Vectors, values: Sequence[float], topic: str) -> None:
    rows = [
        score_row(world.at(at) + timedelta(seconds=i / 10), f"{topic}-{i}", {"good": value}, segments={"tenant": "a"})
        for i, value in enumerate(values)
    ]
    world.store(rows)
    world.database.insert("trace_texts", [text_row(row, f"{question} PRIVATE{i}?") for i, row in enumerate(rows)])
    world.database.insert(
        "embeddings",
        [
            EmbeddingRow("live", "shop", "prod", row.time, row.trace_id, row.version, "e@1", vector.tolist(), topic, 7)
            for row, vector in zip(rows, vectors, strict=True)
        ],
    )


@pytest.mark.clickhouse
def test_weak_points_are_stated_once_without_a_word_of_users(database: Database) -> None:
    world = World(database, settings=JobSettings(insights_every_s=1))
    store(world, 0, "how do I get my refund", around(TOPICS[0], 160, 1, 0.05), [0.1, 0.1, 0.9] * 53 + [0.9], "refund")
    store(world, 60, "where is it", around(TOPICS[1], 300, 2, 0.05), [0.1] * 15 + [0.9] * 285, "delivery")
    stated = world.jobs.run_insights(world.at(100))
    told = _told(database)
    assert stated == RunResult(read=460, raised=len(told))
    of_kind: dict[str, list[Mapping[str, object]]] = {}
    for attributes in told.values():
        of_kind.setdefault(str(attributes["kind"]), []).append(attributes)
    (group,) = of_kind["group"]
    assert group["topic"] == "refund"
    assert 0.55 < float(str(group["failed_share"])) < 0.8
    assert {(one["topic"], one["question_type"]) for one in of_kind["topic"]} == {("refund", ""), ("refund", "how")}
    assert {(one["asked"], one["failed"]) for one in of_kind["topic"]} == {(160, 106)}
    (failures,) = of_kind["failures"]
    assert (failures["asked"], failures["failed"]) == (460, 121)
    rows = database.rows("SELECT * FROM insights FINAL")
    assert "private" not in json.dumps(rows, default=str).lower()
    assert all(row["type"] == "weak_point" and row["examples"] and row["actions"] for row in rows)

    world.elect()
    world.jobs.run_insights(world.at(200))
    assert _told(database) == told


def _told(database: Database) -> dict[str, Mapping[str, object]]:
    rows = database.rows("SELECT insight_id, attributes FROM insights FINAL")
    return {row["insight_id"]: json.loads(row["attributes"]) for row in rows}
