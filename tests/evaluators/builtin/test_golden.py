"""A score of one version means the same for ever: output that moves needs a new version."""

import pytest

from tests.evaluators.builtin.golden import FOLDER, builtin, current, differences, stored


@pytest.mark.parametrize("id", builtin())
def test_output_is_the_golden_files(id: str) -> None:
    before, now = stored(id), current(builtin()[id])
    assert before is not None, "no golden file: python -m tests.evaluators.builtin.golden"
    assert before["version"] == now["version"], "a new version: python -m tests.evaluators.builtin.golden"
    moved = differences(before["outcomes"], now["outcomes"])
    assert not moved, "output moved: raise the evaluator's version, then python -m tests.evaluators.builtin.golden"


@pytest.mark.parametrize("id", builtin())
def test_a_golden_file_has_scores(id: str) -> None:
    before = stored(id)
    assert before is not None
    assert sum(said["outcome"] == "Scored" for said in before["outcomes"].values()) >= 2


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {*builtin(), "traces"}


def test_a_moved_score_is_seen() -> None:
    said = {"metrics": {"groundedness": 0.5}, "evidence": [{"start": 1}]}
    assert not differences(said, {"metrics": {"groundedness": 0.5 + 1e-9}, "evidence": [{"start": 1}]})
    assert differences(said, {"metrics": {"groundedness": 0.51}, "evidence": [{"start": 1}]})
    assert differences(said, {"metrics": {"groundedness": 0.5}, "evidence": [{"start": 2}]})
    assert differences(said, {"metrics": {}, "evidence": [{"start": 1}]})
