"""Rows of table `labels` for tests."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ragtide.stream.labels.rows import LabelRow


def label_row(trace_id: str, offset: int, version: int = 1, **changes: Any) -> LabelRow:
    """Make a label without a fact: `changes` has some. One of a sample is of `faithfulness`, unless they say so."""
    time = datetime.now(UTC) - timedelta(hours=1)
    made = LabelRow(trace_id, time, "rag.labels", 0, offset, version, "ada", "", "", "", "", None, "")
    evaluator = {"sample_evaluator": "faithfulness"} if "sample_rate" in changes else {}
    return made._replace(**{**evaluator, **changes})
