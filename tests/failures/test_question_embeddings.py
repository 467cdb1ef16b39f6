"""Vectors of questions through a kill -9 and a replay, with the real encoder, broker and engine."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.settings import EncoderSettings
from ragtide.sinks.clickhouse.database import Database
from tests.chaos.processes import Ragtide
from tests.failures.bad_records import trace
from tests.failures.site import Message, Sections, of
from tests.stream.core.traffic import Broker

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse, pytest.mark.onnx]

COUNT = 900
SECTIONS: Sections = {
    "evaluators": {"enabled": ["answer_relevancy_sentence"]},
    "evaluators.encoder": {"backend": "onnx"},
    "worker": {"slice_records": 20, "block_wait_ms": 50, "heartbeat_s": 0.5},
}
STORED = "SELECT trace_id, model, vector FROM embeddings FINAL WHERE run_id = {run:String} ORDER BY trace_id"


def question(number: int) -> str:
    return f"How long may order {number} take to arrive?"


def test_a_killed_worker_leaves_one_vector_of_every_question_and_a_replay_the_same(
    broker: Broker, database: Database, tmp_path: Path
) -> None:
    now = datetime.now(UTC).isoformat()
    messages = [
        Message(trace(f"t-{n:04}", time=now, question=question(n), answer="Two days."), str(n).encode())
        for n in range(COUNT)
    ]
    site = of(tmp_path, broker, database, SECTIONS)

    def distinct() -> int:
        return int(database.rows("SELECT uniqExact(trace_id) AS n FROM embeddings")[0]["n"])

    with site.up():
        site.produce(messages)
        first = Ragtide("worker", "--lane", "model", config=site.config, log=tmp_path / "killed.log")
        try:
            site.until(lambda: distinct() > 0, "vectors of the first questions")
        finally:
            first.kill()
        assert distinct() < COUNT, "killed too late to prove anything"
        second = site.worker("model")
        site.until(lambda: distinct() == COUNT, "a vector of every question")
        assert second.stop() == 0, site.logs()
        replayed = Ragtide("replay", "--run", "again", config=site.config, log=tmp_path / "replay.log")
        replayed.process.wait(120)
        assert replayed.stop() == 0, site.logs()

    encoder = load_encoder(EncoderSettings(backend="onnx"))
    expected = encoder.encode([question(n) for n in range(COUNT)])
    for run in ("live", "again"):
        rows = database.rows(STORED, {"run": run})
        assert [row["trace_id"] for row in rows] == [f"t-{n:04}" for n in range(COUNT)]
        assert {row["model"] for row in rows} == {encoder.revision}
        vectors = np.array([row["vector"] for row in rows])
        # 8 significant bits are stored; and in another batch the encoder's numbers end in other digits
        np.testing.assert_allclose(vectors, expected, rtol=2**-8, atol=1e-6)
