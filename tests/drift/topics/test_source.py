"""Vectors read from the real table are those that were stored."""

import numpy as np
import pytest

from ragtide.drift.topics.source import ENCODED_VECTOR, decode_vectors
from ragtide.sinks.clickhouse.database import Database

pytestmark = pytest.mark.clickhouse


def test_components_of_zero_keep_their_place(database: Database) -> None:
    stored = np.array([[1.0, 0.0, 0.5], [0.0, 0.0, 0.0], [-0.0, 1e-45, -3.5]], np.float32)
    encoded = [
        database.rows(
            f"SELECT {ENCODED_VECTOR} AS encoded FROM (SELECT {{vector:Array(Float32)}} AS vector)", {"vector": row}
        )[0]
        for row in stored.tolist()
    ]
    np.testing.assert_array_equal(decode_vectors([row["encoded"] for row in encoded]), stored)
