"""Memory of the GPUs that this process computes on: bounded by a setting, and told."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CardMemory:
    """Of one GPU, by the number that torch gives it."""

    number: int
    limit_bytes: int

    @property
    def name(self) -> str:
        """As `device` names it in settings."""
        return f"cuda:{self.number}"

    @property
    def reserved_bytes(self) -> int:
        """What torch holds of it for this process, in use or kept for the next batch; CUDA takes its own beside it."""
        import torch

        return int(torch.cuda.memory_reserved(self.number))


@dataclass(slots=True)
class _Bound:
    most_bytes: int | None = None


_bound = _Bound()  # a process has one, whatever it loads


def bound_cards(most_bytes: int | None) -> None:
    """Of each GPU that is chosen from now on torch takes so much at most; None: all that is free. Touches no card."""
    _bound.most_bytes = most_bytes


def within_bound(device: Any) -> None:
    """From now on more than the bound is out of memory to torch on this card; no other card is touched."""
    if _bound.most_bytes is None:
        return
    import torch

    share = _bound.most_bytes / torch.cuda.get_device_properties(device).total_memory
    with torch.cuda.device(device):  # setting it would leave it the current one
        torch.cuda.set_per_process_memory_fraction(min(1.0, share), device)


def cards_in_use() -> Iterator[CardMemory]:
    """The GPUs that something of this process is on; none where torch was never loaded."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for number in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(number):
            share = torch.cuda.get_per_process_memory_fraction(number)
            yield CardMemory(number, round(share * torch.cuda.get_device_properties(number).total_memory))
