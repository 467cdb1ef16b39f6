"""What the vector of a question costs: bytes on disk, CPU to insert it, and how far cosines move.

`python -m benchmarks.question_vectors [--times 5]`: MiniLM's vectors of the demo's questions and sentences go into the
embedded ClickHouse as the table `embeddings` keeps them, and as rivals do: as they come, and as a column of BFloat16.
The ratio is the disk of table `embeddings` to that of Float32 as it comes, with ClickHouse's default codec. Ends with
1 above the goal.
"""

import argparse
import random
import tempfile
import time
import uuid
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Vectors
from ragtide.evaluators.text import sentences
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.demo import corpus
from ragtide.stream.demo.questions import ask_about
from ragtide.stream.ingest.embeddings import round_to_bfloat16

GOAL = 0.6
QUESTIONS = 10_000  # drawn; a tenth of them differ
SIZE = """
    SELECT sum(column_data_compressed_bytes) AS bytes FROM system.parts_columns
    WHERE active AND database = currentDatabase() AND table = {table:String} AND column = 'vector'
"""


class Row(NamedTuple):
    number: int
    vector: Sequence[float]


class Cost(NamedTuple):
    bytes: float  # of a vector on disk
    cpu_us: float  # of the client to insert one


def texts() -> list[str]:
    """What the demo's users ask, and the sentences that answer."""
    passages = corpus.read(lambda text: [sentence.text for sentence in sentences.split(text)])
    rng = random.Random("question vectors")
    asked = [ask_about(passages, rng).text for _ in range(QUESTIONS)]
    return list(dict.fromkeys([*asked, *(line for passage in passages for line in passage.sentences)]))


def stored(database: Database, column: str, vectors: Vectors, times: int) -> Cost:
    """What one vector costs in a column of this type, at best of so many times."""
    rows = [Row(number, array("f", vector.tobytes())) for number, vector in enumerate(vectors)]
    table = f"stored_{uuid.uuid4().hex}"  # the client remembers the types of a table's columns
    database.command(
        f"CREATE TABLE {table} (number UInt32, vector {column}) ENGINE = MergeTree ORDER BY number "
        "SETTINGS min_bytes_for_wide_part = 0"
    )
    spent = []
    for _ in range(times):
        database.command(f"TRUNCATE TABLE {table}")
        started = time.process_time()
        database.insert(table, rows)
        spent.append(time.process_time() - started)
    [found] = database.rows(SIZE, {"table": table})
    return Cost(found["bytes"] / len(rows), min(spent) / len(rows) * 1e6)


def moved(vectors: Vectors, kept: Vectors) -> Vectors:
    """How far the cosine of each pair moves."""
    unit = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    by: Vectors = np.abs(unit @ unit.T - vectors @ vectors.T)
    return by


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    found = texts()
    vectors = load_encoder(EncoderSettings(backend="onnx")).encode(found)
    cut = (vectors.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    ways = {
        "Float32 as it comes": ("Array(Float32)", vectors, vectors),
        "... with ZSTD(1)": ("Array(Float32) CODEC(ZSTD(1))", vectors, vectors),
        "... rounded (table embeddings)": (
            "Array(Float32) CODEC(ZSTD(1))",
            round_to_bfloat16(vectors),
            round_to_bfloat16(vectors),
        ),
        "BFloat16 with ZSTD(1)": ("Array(BFloat16) CODEC(ZSTD(1))", vectors, cut),
    }
    print(f"{len(found)} texts, vectors of {vectors.shape[1]} numbers")
    costs = []
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder)) as server:
        database = Database(server.settings)
        database.create()
        stored(database, "Array(Float32)", vectors, 1)  # warm
        for name, (column, given, kept) in ways.items():
            cost, off = stored(database, column, given, times), moved(vectors, kept)
            costs.append(cost)
            print(
                f"{name:32} {cost.bytes:6.0f} bytes   {cost.cpu_us:6.1f} us CPU of the client   "
                f"cosines off by {off.max():.5f} at most, {off.mean():.5f} on average"
            )
    as_it_comes, _, ours, bfloat = costs
    ratio = ours.bytes / as_it_comes.bytes
    print(f"disk     {ratio:.2f} of Float32 as it comes (goal {GOAL}), BFloat16 {bfloat.bytes / as_it_comes.bytes:.2f}")
    print(f"CPU      {ours.cpu_us / as_it_comes.cpu_us:.1f} of it, BFloat16 {bfloat.cpu_us / as_it_comes.cpu_us:.1f}")
    return 0 if ratio <= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
