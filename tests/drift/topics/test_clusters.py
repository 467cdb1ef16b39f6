"""Planted clusters are found, noise has none, and a process of its own finds the same."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from ragtide.drift.topics.clusters import NO_CLUSTER, find_clusters, find_clusters_apart
from ragtide.evaluators.errors import Transient
from tests.drift.topics.synthetic import around, directions, scattered


def test_planted_clusters_are_found_among_noise() -> None:
    parts = [around(one, 40, seed) for seed, one in enumerate(directions(6))]
    vectors = np.concatenate([*parts, scattered(60, 99)])
    found = find_clusters(vectors, 10, seed=1)
    planted = np.repeat(np.arange(6), 40)
    assert adjusted_rand_score(planted, found[:240]) > 0.95
    assert (found[240:] == NO_CLUSTER).mean() > 0.8


def test_noise_has_no_clusters() -> None:
    assert set(find_clusters(scattered(400, 1), 10, seed=1)) == {NO_CLUSTER}


def test_too_few_have_none() -> None:
    assert find_clusters(around(directions(1), 19, 1), 10, seed=1).tolist() == [NO_CLUSTER] * 19


def test_what_is_nowhere_dense_is_parted_where_it_lies_apart() -> None:
    """Two clouds of so few that none is dense enough for HDBSCAN's least size to hold twice."""
    one, other = directions(2)
    vectors = np.concatenate([around(one, 12, 1, 0.02), around(other, 12, 2, 0.02)])
    found = find_clusters(vectors, 12, seed=1)
    assert adjusted_rand_score(np.repeat([0, 1], 12), found) == 1.0


def test_a_process_of_its_own_finds_the_same() -> None:
    vectors = np.concatenate([around(one, 30, seed) for seed, one in enumerate(directions(4))])
    there = find_clusters_apart(vectors, 10, 1, max_in_process=0)
    assert there.tolist() == find_clusters(vectors, 10, 1).tolist()
    assert there.max() == 3


@pytest.mark.parametrize("repeated", [10, 400])
def test_one_question_asked_again_and_again_stalls_nothing(repeated: int) -> None:
    vectors = np.repeat(directions(1), repeated, axis=0)
    assert len(find_clusters(vectors, 10, seed=1)) == repeated


@pytest.mark.parametrize(
    ("dies", "error", "said"),
    [("kill -9 $$", Transient, "signal 9"), ("echo why it broke >&2; exit 1", RuntimeError, "why it broke")],
)
def test_a_process_that_is_killed_is_tried_again_and_one_that_breaks_says_why(
    dies: str, error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat >/dev/null\n{dies}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(error, match=said):
        find_clusters_apart(scattered(30, 1), 10, 1, max_in_process=0)
