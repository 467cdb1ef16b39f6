"""What the comparison after a seed calls lost, doubled and wrong; rows and windows by hand."""

from typing import Any

import pytest

from tests.chaos.harness.model import contents
from tests.chaos.harness.verdict import Verdict, judge_rows, judge_windows
from tests.drift.windows_model import Content, Key

METRIC = "inputs.answer_words"
KEY = Key("live", "shop", "prod", METRIC, 1_200_000_000, "", "m1", "", "", "")
EMPTY = contents(METRIC, Content())
TWO = contents(METRIC, Content(seen=2, sampled=2, applicable=2, scored=2, values=[4.0, 8.0]))


@pytest.mark.parametrize(
    ("found", "lost", "doubled", "wrong"),
    [
        ([("a", 1), ("b", 2)], 0, 0, 0),
        ([("a", 1)], 1, 0, 0),
        ([("a", 1), ("a", 1), ("b", 2)], 0, 1, 0),
        ([("a", 1), ("b", 3)], 0, 0, 1),
        ([("a", 1), ("b", 2), ("c", 2)], 0, 1, 0),  # of nothing that was sent
        ([("a", 1), ("a", 1), ("a", 3)], 1, 2, 0),
    ],
)
def test_rows(found: list[tuple[str, int]], lost: int, doubled: int, wrong: int) -> None:
    verdict = Verdict()
    judge_rows(verdict, "traces", {"a": 1, "b": 2}, found)
    assert (verdict.lost, verdict.doubled, verdict.wrong) == (lost, doubled, wrong)
    assert verdict.clean == (not verdict.examples)


def window(columns: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"size_s": 60, **KEY._asdict(), **columns, **changes}


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        ([window(TWO)], 0),
        ([], 1),
        ([window(TWO), window(TWO)], 1),  # of two fingerprints
        ([window(TWO, seen=3)], 1),
        ([window(TWO, sum=12.5)], 1),
        ([window(TWO, bins={})], 1),
        ([window(TWO), window(EMPTY, model="m2")], 0),  # every trace left it
        ([window(TWO), window(EMPTY, model="m2", seen=1)], 1),
        ([window(TWO), window(TWO, size_s=3600)], 1),
    ],
)
def test_windows(found: list[dict[str, Any]], wrong: int) -> None:
    verdict = Verdict()
    judge_windows(verdict, {(60, KEY): TWO}, found)
    assert verdict.wrong_windows == wrong
    assert TWO["sum_squares"] == 80.0  # 16 + 64
