"""GPU memory of this process: its limit and its use."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CardMemory:
    """Memory of one GPU, by the number that torch gives it."""

    number: int
    limit_bytes: int

    @property
    def name(self) -> str:
        """The name for the setting `device`."""
        return f"cuda:{self.number}"

    @property
    def reserved_bytes(self) -> int:
        """Bytes that torch holds for this process, in use or cached. CUDA takes its own in addition."""
        import torch

        return int(torch.cuda.memory_reserved(self.number))


@dataclass(slots=True)
class _Bound:
    most_bytes: int | None = None


_bound = _Bound()  # a process has one, whatever it loads


def limit_cards(most_bytes: int | None) -> None:
    """Limit the memory that torch takes of each GPU chosen from now on. None means all free memory. Touches no GPU."""
    _bound.most_bytes = most_bytes


def apply_card_limit(device: Any) -> None:
    """Make torch run out of memory beyond the limit on this GPU. Touches no other GPU."""
    if _bound.most_bytes is None:
        return
    import torch

    share = _bound.most_bytes / torch.cuda.get_device_properties(device).total_memory
    with torch.cuda.device(device):  # setting it would leave it the current one
        torch.cuda.set_per_process_memory_fraction(min(1.0, share), device)


def cards_in_use() -> Iterator[CardMemory]:
    """Yield the GPUs that this process uses. None if torch was never loaded."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for number in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(number):
            share = torch.cuda.get_per_process_memory_fraction(number)
            yield CardMemory(number, round(share * torch.cuda.get_device_properties(number).total_memory))
