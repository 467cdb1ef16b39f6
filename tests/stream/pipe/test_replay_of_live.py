"""A replay of what workers have read, with their settings, leaves their rows: to the bit where no model has a part.

What embeds is equal within 1e-4: a vector's last bits depend on what is encoded beside it, and workers cut otherwise.
"""

import json
import random
import uuid
from datetime import UTC, datetime, timedelta
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide.evaluators import registry
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.cli import main
from tests.chaos.processes import Ragtide, wait_until, write_settings
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import make_topics
from tests.stream.pipe.replaying import everything, fields
from tests.stream.pipe.test_replay_topic import produce

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.onnx, pytest.mark.timeout(300)]

COUNT = 120
WORDS = ("a", "list", "of", "strings", "returns", "when", "each", "object", "holds", "keys", "that", "are", "quoted")
EMBEDDING = ("answer_relevancy_sentence", "answer_semantic_similarity", "context_mrr", "groundedness")


def sentence(rng: random.Random) -> str:
    return f"{' '.join(rng.choices(WORDS, k=rng.randint(4, 14)))}.".capitalize()


def traffic(now: datetime) -> list[bytes]:
    """Traces of the last minutes, no two alike, with and without references; some that cannot be used."""
    rng = random.Random(6)
    made = []
    for n in range(COUNT):
        contexts = [{"id": f"c-{n}-{k}", "text": " ".join(sentence(rng) for _ in range(3))} for k in range(3)]
        trace = fields(
            trace_id=f"t-{n}",
            time=(now - timedelta(seconds=2 * n)).isoformat(),
            question=f"What is it that {sentence(rng)[:-1].lower()}?",
            answer=" ".join(sentence(rng) for _ in range(rng.randint(1, 4))),
            contexts=contexts,
            expected=[sentence(rng)] if n % 3 else ...,
        )
        made.append(json.dumps(trace).encode())
    return [*made, b"poison", b'{"app": "docs"}']


def of(stored: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Without the run's name; scores of what embeds apart from all others."""
    told = {table: [{**row, "run_id": ""} for row in found] for table, found in stored.items()}
    scores = told.pop("scores")
    models = [row["evaluator"] in EMBEDDING for row in scores]
    return told | {"model": list(compress(scores, models)), "fast": list(compress(scores, map(not_, models)))}


def near(one: Any, other: Any) -> bool:
    """Equal, numbers within 1e-4."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(near(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(near, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-4
    return bool(one == other)


def read(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "evidence": json.loads(row["evidence"])}


def test_a_replay_of_what_a_worker_read_leaves_its_rows(
    kafka: KafkaNode,
    clickhouse_server: EmbeddedClickHouse,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fast = [id for id, evaluator in registry.load().items() if evaluator.lane == "fast"]
    for name, value in {
        "EVALUATORS__ENABLED": ",".join([*fast, *EMBEDDING]),
        "EVALUATORS__ENCODER__BACKEND": "onnx",
        "EVALUATORS__ENCODER__MODEL": "all-MiniLM-L6-v2",
        "WORKER__BATCH_RECORDS": "33",
    }.items():
        monkeypatch.setenv(f"RAGTIDE_{name}", value)
    topic, now = f"t-{uuid.uuid4().hex}", datetime.now(UTC)
    make_topics(kafka, {f"{topic}.dead": 1, f"{topic}.jobs": 1})
    produce(kafka.bootstrap, topic, [(int(now.timestamp() * 1000) + n, each) for n, each in enumerate(traffic(now))], 3)
    reached = clickhouse_server.settings.model_copy(update={"database": database.settings.database})
    config = write_settings(tmp_path / "ragtide.toml", kafka.bootstrap, topic, reached)

    worker = Ragtide("worker", "--lane", "fast,model", config=config, log=tmp_path / "worker.log")
    try:
        wait_until(lambda: scored(database) >= COUNT * len(EMBEDDING), 120, f"all is scored; see {tmp_path}")
        wait_until(lambda: letters(database) == 2, 60, f"dead letters are stored; see {tmp_path}")
        assert worker.stop() == 0
    finally:
        worker.kill()
    live = everything(database, "live")
    start, end = (now - timedelta(seconds=2 * COUNT)).isoformat(), (now + timedelta(minutes=1)).isoformat()
    args = ["replay", "--run", "again", "--from", start, "--to", end, "--config", str(config)]
    told = CliRunner().invoke(main, args)
    assert told.exit_code == 0, told.output
    again = everything(database, "again")
    assert everything(database, "live") == live

    ours, theirs = of(live), of(again)
    assert [len(ours[table]) for table in ("traces", "trace_texts", "dead_letters")] == [COUNT, COUNT, 2]
    assert len(ours["model"]) == COUNT * len(EMBEDDING)
    models = [(read(one), read(other)) for one, other in zip(ours.pop("model"), theirs.pop("model"), strict=True)]
    assert [pair for pair in models if not near(*pair)] == []
    assert {one["evaluator"] for one, _ in models if one["status"] == "scored"} == set(EMBEDDING)
    assert ours == theirs


def scored(database: Database) -> int:
    """Rows of evaluators that embed, of live, each once."""
    names = ", ".join(f"'{name}'" for name in EMBEDDING)
    sql = f"SELECT count() AS n FROM scores FINAL WHERE run_id = 'live' AND evaluator IN ({names})"
    return int(database.rows(sql)[0]["n"])


def letters(database: Database) -> int:
    """Dead letters of live, which are stored with the last traces of their partitions."""
    return int(database.rows("SELECT count() AS n FROM dead_letters FINAL WHERE run_id = 'live'")[0]["n"])
