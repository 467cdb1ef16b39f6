"""Every insight, and causes of what moved."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from ragtide.drift.notify.annotations import AnnotationChannel
from ragtide.drift.notify.messages import enqueue
from ragtide.drift.rootcause.messages import root_cause_message
from ragtide.drift.rootcause_job import RootCauseJob
from ragtide.drift.rules.model import Series
from ragtide.drift.rules.resolve import coverage_rule_for
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import EmbeddingRow
from ragtide.sinks.settings import PrivacySettings
from ragtide.stream.ingest.question_hash import question_hash_of
from tests.drift.insights import test_job as comparisons
from tests.drift.rootcause.scenarios import METRICS, explain_app, world_of
from tests.drift.rootcause.test_explain import ill, mix, rollout, tenant
from tests.drift.test_root_cause_job import END, TENANTS, traces
from tests.drift.topics.synthetic import around, directions
from tests.drift.world import World, score_row, text_row, trace_row
from tests.pins import recorded
from tests.pins.golden import check
from tests.pins.pinned import START, pinned_database

pytestmark = pytest.mark.clickhouse
HASH = question_hash_of(PrivacySettings(hash_key=SecretStr("k")))


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """Models, metrics and labels of one application, questions and topics of another."""
    suite, jobs = comparisons.SUITE, JobSettings(insights_every_s=1)
    with pinned_database(clickhouse_server) as database:
        frames = WindowSettings(base_s=60, sizes_s=(60,), out_of_orderness_s=0)
        world = World(database, windows=frames, evaluators=suite, settings=jobs, start=START)
        for evaluator in comparisons.METRICS:
            rows = comparisons.rows_of(world, evaluator)
            world.store(rows, suite[evaluator].lane, traces=evaluator == "quality")
        grounded = [
            comparisons.row_of(
                world, "groundedness", i, {"groundedness": float(value)}, evidence=comparisons.sentence(i)
            )
            for i, value in enumerate(comparisons.SUPPORT)
        ]
        unsound = [
            comparisons.row_of(world, "agent_sanity", i, {"agent_sanity": 0.5}, parts={"artifacts": 2.0, "empty": 1.0})
            for i in (20, 21)
        ]
        sound = [
            comparisons.row_of(world, "agent_sanity", i, {"agent_sanity": 1.0}, parts={"artifacts": 2.0})
            for i in range(20)
        ]
        world.store(grounded, "model", traces=False)
        world.store([*sound, *unsound], traces=False)
        database.insert("labels", [comparisons.label(world, i) for i in range(0, comparisons.TRACES, 4)])
        ask(world, "how do I get my refund", "refund", [0.1, 0.1, 0.9] * 53 + [0.9], 10)
        ask(world, "where is it", "delivery", [0.1] * 15 + [0.9] * 285, 70)
        world.scores(120, [0.9] * 3, fingerprint="f2")
        for lane in ("fast", "model"):
            world.progress(300, lane=lane)
        world.watch(300)
        world.jobs.run_insights(world.at(300))
        yield world


def ask(world: World, question: str, topic: str, values: list[float], second: float) -> None:
    """Questions of a topic, one of them twenty times."""
    rows = [
        score_row(world.at(second + i / 10), f"{topic}-{i}", {"good": value}, app="help", segments={"tenant": "a"})
        for i, value in enumerate(values)
    ]
    texts = [f"{question} {'again' if i < 20 else i}?" for i in range(len(rows))]
    world.store(rows, traces=False)
    world.database.insert(
        "traces",
        [trace_row(row)._replace(question_hash=HASH(text)) for row, text in zip(rows, texts, strict=True)],
    )
    world.database.insert("trace_texts", [text_row(row, text) for row, text in zip(rows, texts, strict=True)])
    near = around(directions(2)[int(topic == "delivery")], len(rows), int(second), 0.05)
    vectors = [vector.tolist() for vector in near]
    world.database.insert(
        "embeddings",
        [
            EmbeddingRow("live", "help", "prod", row.time, row.trace_id, row.version, "e@1", vector, topic, 7)
            for row, vector in zip(rows, vectors, strict=True)
        ],
    )


def test_insights(world: World) -> None:
    check("insights", "insights", recorded.insights(world.database, START))
    check("sentences", "insights", recorded.sentences(world.database, START))


def test_causes_of_problems(clickhouse_server: EmbeddedClickHouse) -> None:
    """Of one application a tenant fell, of another all tenants."""
    with pinned_database(clickhouse_server) as database:
        frames = WindowSettings(base_s=60, out_of_orderness_s=0, segments={"tenant": TENANTS})
        world = World(database, windows=frames, start=START)
        world.store([*traces(world, "one", ("acme",)), *traces(world, "all", TENANTS)])
        world.advance(END * 60)
        RootCauseJob().run(world.jobs, world.at(END * 60))
        check("causes", "events", recorded.events(database, START))
        check("causes", "problems", recorded.problems(database, START))
        check("sentences", "causes of problems", recorded.sentences(database, START))
        enqueue(database, AnnotationChannel(), world.term.epoch, world.at(END * 60 + 60))
        check("causes", "messages", recorded.messages(database, START))
        check("sentences", "messages of causes", recorded.texts(database))


def test_causes(clickhouse_server: EmbeddedClickHouse) -> None:
    with pinned_database(clickhouse_server) as database:
        world = world_of(database, {"tenant": tenant, "rollout": rollout, "mix": mix, "ill": ill}, START)
        coverage = coverage_rule_for(
            Series("ill", "prod", "quality.good", "", "", ""), METRICS["quality.good"], RuleSettings()
        )
        found = [
            *(explain_app(world, app) for app in ("tenant", "rollout", "mix")),
            explain_app(world, "tenant", metric="contexts.near"),
            explain_app(world, "ill", metric="speed.seconds"),
            explain_app(world, "ill", metric="checked.passes"),
            explain_app(world, "ill", rule=coverage),
        ]
        check("sentences", "causes", map(root_cause_message, found))
