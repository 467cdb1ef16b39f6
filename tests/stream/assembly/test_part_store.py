"""Parts in memory and on disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.errors import ConfigError
from ragtide.stream.worker.assembly.part_store import PartStore

ACTIONS = st.lists(st.tuples(st.sampled_from(["add", "parts", "drop"]), st.integers(0, 5), st.integers(0, 400)))


@given(ACTIONS)
def test_parts_come_back_in_order_wherever_they_are(actions: list[tuple[str, int, int]]) -> None:
    store, model = PartStore(1_000), dict[int, list[bytes]]()
    for number, (action, owner, size) in enumerate(actions):
        if action == "add":
            value = number.to_bytes(2) + bytes(size)
            store.add(owner, value)
            model.setdefault(owner, []).append(value)
        elif action == "drop":
            store.drop(owner)
            model.pop(owner, None)
        assert store.parts(owner) == model.get(owner, [])
        assert store.memory_bytes <= 1_000
    for owner in range(6):
        store.drop(owner)
    assert (store.memory_bytes, store.disk_bytes) == (0, 0)
    store.close()


def test_nothing_is_left_in_the_directory(tmp_path: Path) -> None:
    store = PartStore(1_000, str(tmp_path))
    for owner in range(100):
        store.add(owner, bytes(100))
    assert store.disk_bytes > 0
    assert list(tmp_path.iterdir()) == []
    assert all(store.parts(owner) == [bytes(100)] for owner in range(100))


def test_what_has_waited_longest_is_on_disk() -> None:
    store = PartStore(1_000)
    store.add(1, b"old")
    store.add(2, bytes(300))
    store.add(1, b"touched")
    store.add(3, bytes(300))
    assert store.disk_bytes == 300 + 100, "the part of 2, and what Python has around it"


def test_a_directory_that_takes_nothing_is_for_a_person_to_correct(tmp_path: Path) -> None:
    store = PartStore(100, str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match=r"otel\.spill_directory"):
        store.add(1, bytes(1_000))
