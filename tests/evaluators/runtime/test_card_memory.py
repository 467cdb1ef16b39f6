"""What a process takes of a card: a stand-in for torch's calls; tests/evaluators/models/test_gpu.py has a real one."""

from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from ragtide.evaluators.runtime.card_memory import CardMemory, apply_card_limit, cards_in_use, limit_cards
from ragtide.stream.assembly import assemble
from ragtide.stream.settings.loader import Settings

pytestmark = pytest.mark.models

GIB = 1 << 30


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, float]]:
    """What torch was told, of two cards of 80 GiB."""
    import torch

    told: dict[int, float] = {}
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(total_memory=80 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda number: 5 * GIB if number in told else 0)
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", told.__getitem__)
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda share, device: told.update({device.index: share})
    )
    yield told
    limit_cards(None)


def test_only_the_card_that_is_chosen_is_bounded_and_told(shares: dict[int, float]) -> None:
    import torch

    apply_card_limit(torch.device("cuda", 1))
    assert shares == {}
    limit_cards(20 * GIB)
    apply_card_limit(torch.device("cuda", 1))
    assert shares == {1: 0.25}
    assert list(cards_in_use()) == [CardMemory(1, 20 * GIB)]
    assert [(card.name, card.reserved_bytes) for card in cards_in_use()] == [("cuda:1", 5 * GIB)]


def test_more_than_the_card_has_is_all_of_it(shares: dict[int, float]) -> None:
    import torch

    limit_cards(100 * GIB)
    apply_card_limit(torch.device("cuda", 0))
    assert shares == {0: 1.0}


def test_a_lane_that_runs_a_model_sets_the_bound_before_it_loads_any(shares: dict[int, float]) -> None:
    import torch

    given = {"card_bytes": 8 * GIB, "encoder": {"backend": "onnx"}}
    assemble(Settings.model_validate({"evaluators": {**given, "enabled": ["rouge"]}}), "model")
    apply_card_limit(torch.device("cuda", 0))
    assert shares == {}
    assemble(Settings.model_validate({"evaluators": {**given, "enabled": ["groundedness"]}}), "model")
    apply_card_limit(torch.device("cuda", 0))
    assert shares == {0: 0.1}
