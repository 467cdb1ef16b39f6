"""Memory of the GPUs that this process computes on: bounded by a setting, and told."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec


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
    def taken_bytes(self) -> int:
        """What torch holds of it for this process, in use or kept for the next batch; CUDA takes its own beside it."""
        import torch

        return int(torch.cuda.memory_reserved(self.number))


def bound_cards(most_bytes: int | None) -> None:
    """From now on torch takes so much of each GPU at most, for weights and work; more is out of memory to it.

    To be called before models are loaded. None: all that is free.
    """
    if most_bytes is None or find_spec("torch") is None:
        return
    import torch

    for number in range(torch.cuda.device_count()):
        share = most_bytes / torch.cuda.get_device_properties(number).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, share), number)


def cards_in_use() -> Iterator[CardMemory]:
    """The GPUs that something of this process is on; none where torch was never loaded."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for number in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(number):
            share = torch.cuda.get_per_process_memory_fraction(number)
            yield CardMemory(number, round(share * torch.cuda.get_device_properties(number).total_memory))
