"""Shares the GPUs of a machine among worker processes: each sees one GPU."""

import fcntl
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ragtide.evaluators.errors import ConfigError

VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class CardSlot:
    """A slot of this process on a GPU, held until the process ends, however it ends."""

    card: str  # as CUDA_VISIBLE_DEVICES names it
    lock: int  # a file descriptor; closing it gives the place away


@cache  # a process has one place, whatever it loads
def take_card(workers_per_card: int) -> str | None:
    """Take a slot on the GPU with the fewest workers, and make it the only one that this process sees.

    Call it before anything uses a GPU. None if the machine has no GPU, or shows this process none. Raises `ConfigError`
    if every slot is taken. Processes coordinate by locked files in the temporary folder: containers that do not share
    it must be given their GPUs.
    """
    slot = take_slot(cards(os.environ), workers_per_card, Path(tempfile.gettempdir()))
    if slot is None:
        return None
    os.environ[VISIBLE] = slot.card
    return slot.card


def cards(environment: Mapping[str, str]) -> Sequence[str]:
    """Return the GPUs that this process may use, as named in CUDA_VISIBLE_DEVICES."""
    if VISIBLE in environment:
        named = [name.strip() for name in environment[VISIBLE].split(",")]
        return [name for name in named if name not in ("", "-1")]
    if find_spec("torch") is None:
        return []
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]  # asks the driver, starts nothing on a card


def take_slot(found: Sequence[str], workers_per_card: int, folder: Path) -> CardSlot | None:
    """Take the first free slot: one on every GPU before a second on any. None without GPUs. Raises like `take_card`."""
    for number in range(workers_per_card):
        for card in found:
            name = folder / f"ragtide-{os.getuid()}-gpu-{card}-{number}.lock"
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
            else:
                return CardSlot(card, lock)
    if not found:
        return None
    raise ConfigError(
        f"every GPU ({', '.join(found)}) has its {workers_per_card} workers: start fewer, or raise "
        "evaluators.workers_per_card"
    )
