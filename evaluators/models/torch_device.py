"""Which torch device runs a model, in which numbers, and how many tokens at once suit it."""

import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evaluators.errors import ConfigError
from evaluators.models.batches import Padded
from evaluators.models.torch_batches import BATCH_TOKENS_CPU, TorchBatches, fitting
from evaluators.settings import ModelSettings

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
    return device


def dtype_of(settings: ModelSettings, device: Any) -> Any:
    """The torch type of the weights: as set, or bfloat16 on a GPU that computes in it, else float32."""
    import torch

    if settings.dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    return getattr(torch, settings.dtype)


def ready(batches: TorchBatches, device: Any, batch_tokens: int | None, max_tokens: int) -> None:
    """Warm the model up, and find how many tokens a forward pass takes best, unless that is set.

    On a GPU that is measured: twice as many tokens, for as long as they are faster and fit.
    """
    if device.type != "cuda":
        batches.batch_tokens = batch_tokens or BATCH_TOKENS_CPU
        batches.run(iter([_blank(1, min(max_tokens, _TYPICAL))]))
        return
    length = min(max_tokens, _TYPICAL)
    batches.batch_tokens = batch_tokens or fitting(_timed(batches, length))
    batches.run(iter([_blank(max(1, batches.batch_tokens // max_tokens), max_tokens)]))
    _log.info("on %s %d tokens at once", device, batches.batch_tokens)


def _timed(batches: TorchBatches, length: int) -> Callable[[int], float]:
    """Seconds of a forward pass over so many tokens, the second of two; `MemoryError` where it does not fit."""

    def seconds(tokens: int) -> float:
        batches.batch_tokens = tokens
        for _ in range(2):
            started = time.perf_counter()
            batches.run(iter([_blank(max(1, tokens // length), length)]))
        if batches.batch_tokens < tokens:
            raise MemoryError
        return time.perf_counter() - started

    return seconds


def _blank(rows: int, length: int) -> Padded:
    return Padded(np.ones((rows, length), np.int64), np.ones((rows, length), np.int64))
