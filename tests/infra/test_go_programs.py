"""A program from Go modules is built once, whoever asks for it at the same time."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.infra.go_programs import kept


def builder(builds: list[Path], *, fails: bool = False) -> Callable[[Path], Path]:
    def build(scratch: Path) -> Path:
        builds.append(scratch)
        time.sleep(0.2)
        assert not fails
        (scratch / "made").write_text("program")
        return scratch / "made"

    return build


def test_two_at_the_same_time_build_it_once(tmp_path: Path) -> None:
    builds: list[Path] = []
    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(kept, "program-1", builder(builds), tmp_path) for _ in range(2))
        assert first.result() == second.result() == tmp_path / "program-1"
    assert (len(builds), (tmp_path / "program-1").read_text()) == (1, "program")
    assert kept("program-2", builder(builds), tmp_path) == tmp_path / "program-2"
    assert len(builds) == 2, "another version"


def test_a_build_that_fails_leaves_nothing_and_is_tried_again(tmp_path: Path) -> None:
    builds: list[Path] = []
    with pytest.raises(AssertionError):
        kept("program-1", builder(builds, fails=True), tmp_path)
    assert not builds[0].exists()
    assert kept("program-1", builder(builds), tmp_path).read_text() == "program"
