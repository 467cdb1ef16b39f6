"""The leading jobs process killed: another one takes over, and says nothing twice."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.local.broker import EmbeddedBroker
from tests.drift.jobs_process import jobs_process
from tests.drift.world import World

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse, pytest.mark.chaos, pytest.mark.timeout(300)]

QUICK = {"SESSION_TIMEOUT_S": "6", "HEARTBEAT_S": "1", "REBALANCE_TIMEOUT_S": "8"}
VARIABLES = {f"RAGTIDE_KAFKA__{name}": value for name, value in QUICK.items()}


def test_kill_9_of_the_leader_loses_no_problem_and_opens_none_twice(
    database: Database, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    world = World(database)
    world.start = database.rows("SELECT toStartOfMinute(now('UTC')) - 180 AS at")[0]["at"]
    name = uuid.uuid4().hex[:8]

    def minute(number: int, evaluator: str, key: str) -> None:
        world.scores(60 * number, [0.1] * 40, evaluator=evaluator, key=key, lane="model")
        for lane in ("fast", "model"):
            world.progress(60 * (number + 1), lane=lane, heartbeat_s=170)

    def opened() -> list[dict[str, Any]]:
        """Without FINAL: as they were written."""
        return database.rows(
            "SELECT metric, count() AS n, uniqExact(event_id) AS ids, max(epoch) AS in_epoch FROM problem_events "
            "WHERE event = 'opened' GROUP BY metric, problem_id ORDER BY in_epoch"
        )

    logs = tmp_path / "first", tmp_path / "second"
    with (
        jobs_process(database, broker.bootstrap, logs[0], name=name, **VARIABLES) as first,
        jobs_process(database, broker.bootstrap, logs[1], name=name, **VARIABLES) as second,
    ):
        first.wait_for(lambda: "the jobs' partition" in first.said())
        second.wait_for(lambda: "the jobs' partition" in second.said())  # whoever joins last says so after it was given
        minute(0, "groundedness", "groundedness")
        [before] = second.wait_for(opened)
        epoch = {"epoch": before["in_epoch"]}
        [leads] = database.rows("SELECT holder FROM leaders WHERE epoch = {epoch:UInt64}", epoch)
        dies, lives = (first, second) if f":{first.process.pid}:" in leads["holder"] else (second, first)
        assert f":{dies.process.pid}:" in leads["holder"]
        dies.process.kill()
        minute(1, "context_relevancy_soft", "recall_relevancy")
        after = lives.wait_for(lambda: opened()[1:])[0]
    assert before == opened()[0]
    assert [(one["metric"], one["n"], one["ids"]) for one in opened()] == [
        ("groundedness.groundedness", 1, 1),
        ("context_relevancy_soft.recall_relevancy", 1, 1),
    ]
    assert after["in_epoch"] > before["in_epoch"]
