"""Which torch device runs a model, in which numbers, and how many tokens at once suit it."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime.batches import PaddedBatch
from ragtide.evaluators.runtime.card_memory import within_bound
from ragtide.evaluators.runtime.torch_batches import Batch, TorchBatches, fastest_batch_tokens, out_of_memory
from ragtide.evaluators.settings import EncoderSettings, ModelSettings

_log = logging.getLogger(__name__)
_TYPICAL = 128  # tokens of a window while batches are measured


def device_of(name: str | None) -> Any:
    """The torch device of that name; unset, a GPU where there is one. Raises `ConfigError`."""
    import torch

    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", torch.cuda.current_device())
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        cards = ", ".join(f"cuda:{number}" for number in range(torch.cuda.device_count())) or "no GPU"
        raise ConfigError(f"there is no torch device {name!r} here; there is cpu, and {cards}") from error
    if device.type == "cuda":
        within_bound(device)
    return device


def dtype_of(settings: EncoderSettings | ModelSettings, device: Any) -> Any:
    """The torch type of the weights: as set, or bfloat16 on a GPU that computes in it, else float32."""
    import torch

    if settings.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    return getattr(torch, settings.dtype)


def move_to_device(model: Any, device: Any, name: str) -> Any:
    """The model on the device, to be read and not trained. Raises `ConfigError` where it does not fit there."""
    with memory_errors(f"the model {name}", device):
        return model.to(device).eval()


@contextmanager
def memory_errors(what: str, device: Any) -> Iterator[None]:
    """`ConfigError` where the device has no memory left for it."""
    try:
        yield
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        said = str(error).partition("\n")[0]
        raise ConfigError(
            f"{what} does not fit on {device}: {said} Raise evaluators.card_bytes, put fewer workers on the card, or "
            "name another device for this model"
        ) from error


def blank(rows: int, length: int) -> Batch:
    """Windows of one token over and over."""
    return PaddedBatch(np.ones((rows, length), np.int64), np.ones((rows, length), np.int64))


def warm_up(
    batches: TorchBatches,
    device: Any,
    batch_tokens: int | None,
    max_tokens: int,
    example: Callable[[int, int], Batch] = blank,
) -> int:
    """Warm the model up and find how many tokens a forward pass takes best, unless that is set; how many outputs it
    has. `example` makes a batch of so many rows of such a length.

    On a GPU that is measured: twice as many tokens, for as long as they are faster and fit. Raises `ConfigError` where
    not one row fits.
    """
    from torch.cuda import empty_cache

    length = min(max_tokens, _TYPICAL)
    with memory_errors(f"a model's work on a text of {max_tokens if device.type == 'cuda' else length} tokens", device):
        if device.type == "cuda" and batch_tokens is None:
            batches.batch_tokens = fastest_batch_tokens(_timer(batches, length, example))
            empty_cache()  # what the largest of them took; other processes may share the card
            _log.info("on %s %d tokens at once", device, batches.batch_tokens)
        elif batch_tokens is not None:
            batches.batch_tokens = batch_tokens
        warm = (max(1, batches.batch_tokens // max_tokens), max_tokens) if device.type == "cuda" else (1, length)
        return int(batches.run(iter([example(*warm)])).shape[1])


def _timer(batches: TorchBatches, length: int, example: Callable[[int, int], Batch]) -> Callable[[int], float]:
    """Seconds of a forward pass over so many tokens, the second of two; `MemoryError` where it does not fit."""

    def seconds(tokens: int) -> float:
        batches.batch_tokens = tokens
        for _ in range(2):
            started = time.perf_counter()
            batches.run(iter([example(max(1, tokens // length), length)]))
        if batches.batch_tokens < tokens:
            raise MemoryError
        return time.perf_counter() - started

    return seconds
