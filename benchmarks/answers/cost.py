"""What comparing answers costs: CPU on arrival, disk, and a look of the job at as many traces as it ever reads."""

import statistics
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.prose_traces import prose_traces
from ragtide.drift.checks.engine import CheckContext
from ragtide.drift.checks.run import run_check
from ragtide.drift.leadership import elect
from ragtide.drift.robustness.answer_agreement import MAX_ANSWERS, MAX_TRACES, AnswerAgreement
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.rows import LIVE
from ragtide.sinks.sample import embedding, trace
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.answer_features import direction
from ragtide.stream.ingest.embeddings import round_to_bfloat16
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings

EVALUATORS = ["answer_relevancy_sentence", "unsuccessful_requests"]
_PROSE = 200  # traces
_SIZE = (
    "SELECT column, sum(column_data_compressed_bytes) AS bytes FROM system.parts_columns WHERE active "
    "AND database = currentDatabase() AND table = 'embeddings' AND column IN ('vector', 'answer', 'answer_claims') "
    "GROUP BY column ORDER BY column"
)


class Cost(NamedTuple):
    """Of a look at 20,000 traces: its CPU here and the time that it took; bytes on disk of each column and trace."""

    cpu_s: float
    took_s: float
    bytes: Mapping[str, float]


def on_arrival_us(encoder: Encoder) -> float:
    """CPU of a trace, beside that of the evaluators, which had its sentences encoded; the median of five."""
    records = [
        StoredRecord("rag.traces", 0, number, 1_772_366_400_000, b"", msgspec.json.encode(one))
        for number, one in enumerate(prose_traces(_PROSE))
    ]
    spent: dict[bool, list[float]] = {True: [], False: []}
    resources = Resources(encoder)
    for _ in range(6):
        for compares, some in spent.items():
            settings = Settings.model_validate(
                {"evaluators": {"enabled": EVALUATORS}, "rules": {"compare_answers": compares}}
            )
            plan = prepare(registry.load(), settings.evaluators, None, encoder).prepared
            pipeline = Pipeline(plan, resources, settings, lane=None, timely=False)
            started = time.process_time()
            pipeline.process(records)
            some.append((time.process_time() - started) / _PROSE * 1e6)
    return statistics.median(spent[True][1:]) - statistics.median(spent[False][1:])


def of_a_look() -> Cost:
    """Vectors and claims are random: nothing packs less."""
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder)) as server:
        database = Database(server.settings)
        migrate(database, RetentionSettings())
        _plant(database, datetime.now(UTC) - timedelta(hours=1))
        sizes = {row["column"]: row["bytes"] / MAX_TRACES for row in database.rows(_SIZE)}
        term = elect(database, "bench")
        assert term is not None
        began, started = time.process_time(), time.perf_counter()
        ctx = CheckContext(database, {}, RuleSettings(), WindowSettings(), JobSettings(), term)
        run_check(AnswerAgreement(), ctx, datetime.now(UTC))
        return Cost(time.process_time() - began, time.perf_counter() - started, sizes)


def _plant(database: Database, at: datetime) -> None:
    rng = np.random.default_rng(1)
    traces, embeddings = [], []
    for number in range(MAX_TRACES):
        id_, time_ = f"{number:036}", at + timedelta(milliseconds=number)
        vector, said = rng.standard_normal((2, 384), np.float32)
        claims = [f"eur:{number // MAX_ANSWERS:08x}", f"seconds:{rng.integers(1 << 32):08x}"]
        traces.append(trace(id_, run_id=LIVE, time=time_, question_hash=f"{number // MAX_ANSWERS:016x}"))
        row = embedding(id_, run_id=LIVE, time=time_, model="all-MiniLM-L6-v2@1", vector=round_to_bfloat16(vector))
        embeddings.append(row._replace(answer=direction(said), answer_claims=claims))
    database.insert("traces", traces)
    database.insert("embeddings", embeddings)
