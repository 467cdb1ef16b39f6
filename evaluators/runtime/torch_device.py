"""Chooses the torch device, number format and batch size of a model."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.runtime.batches import PaddedBatch
from ragtide.evaluators.runtime.card_memory import apply_card_limit
from ragtide.evaluators.runtime.torch_batches import Batch, TorchBatches, fastest_batch_tokens, out_of_memory
from ragtide.evaluators.settings import EncoderSettings, ModelSettings

_log = logging.getLogger(__name__)
_TYPICAL = 128  # tokens of a window while batches are measured


def device_of(name: str | None) -> Any:
    """Return the torch device of that name; if unset, a GPU if there is one. Raises `ConfigError`."""
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
        apply_card_limit(device)
    return device


def dtype_of(settings: EncoderSettings | ModelSettings, device: Any) -> Any:
    """Return the torch type of the weights: as set, or bfloat16 on a GPU that supports it, else float32."""
    import torch

    if settings.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    return getattr(torch, settings.dtype)


def move_to_device(model: Any, device: Any, name: str) -> Any:
    """Move the model to the device, in evaluation mode. Raises `ConfigError` if it does not fit."""
    with memory_errors(f"the model {name}", device):
        return model.to(device).eval()


@contextmanager
def memory_errors(what: str, device: Any) -> Iterator[None]:
    """Turn out of memory into `ConfigError`."""
    try:
        yield
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        message = str(error).partition("\n")[0]
        raise ConfigError(
            f"{what} does not fit on {device}: {message} Raise evaluators.card_bytes, run fewer workers on the GPU, or "
            "set another device for this model"
        ) from error


def blank_batch(rows: int, length: int) -> Batch:
    """Return windows of one repeated token."""
    return PaddedBatch(np.ones((rows, length), np.int64), np.ones((rows, length), np.int64))


def warm_up(
    batches: TorchBatches,
    device: Any,
    batch_tokens: int | None,
    max_tokens: int,
    example: Callable[[int, int], Batch] = blank_batch,
) -> int:
    """Warm up the model and, unless it is set, find the best number of tokens per forward pass. Returns its outputs.

    `example` makes a batch of so many rows and such a length. On a GPU the tokens double while that is faster and fits.
    Raises `ConfigError` if not even one row fits.
    """
    from torch.cuda import empty_cache

    length = min(max_tokens, _TYPICAL)
    with memory_errors(f"a model's work on a text of {max_tokens if device.type == 'cuda' else length} tokens", device):
        if device.type == "cuda" and batch_tokens is None:
            batches.batch_tokens = fastest_batch_tokens(_timer(batches, length, example))
            empty_cache()  # what the largest of them took; other processes may share the card
            _log.info("%s: %d tokens per forward pass", device, batches.batch_tokens)
        elif batch_tokens is not None:
            batches.batch_tokens = batch_tokens
        warm = (max(1, batches.batch_tokens // max_tokens), max_tokens) if device.type == "cuda" else (1, length)
        return int(batches.run(iter([example(*warm)])).shape[1])


def _timer(batches: TorchBatches, length: int, example: Callable[[int, int], Batch]) -> Callable[[int], float]:
    """Time the second of two forward passes over so many tokens. Raises `MemoryError` if it does not fit."""

    def seconds(tokens: int) -> float:
        batches.batch_tokens = tokens
        for _ in range(2):
            started = time.perf_counter()
            batches.run(iter([example(max(1, tokens // length), length)]))
        if batches.batch_tokens < tokens:
            raise MemoryError
        return time.perf_counter() - started

    return seconds
