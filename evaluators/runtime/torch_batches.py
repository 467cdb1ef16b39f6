"""Runs padded batches on a torch device. On a GPU transfers overlap with compute, and batches shrink if it runs out of
memory.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, Self

import numpy as np

from ragtide.evaluators.errors import DeviceLost
from ragtide.evaluators.runtime.batches import Ids
from ragtide.evaluators.spec import Vectors

_log = logging.getLogger(__name__)

BATCH_TOKENS_CPU = 1024  # the fastest of 256 to 16,384 for MiniLM
FIRST_TOKENS, MOST_TOKENS = 4_096, 1 << 20  # of what is tried on a GPU
_WORTH = 1.05  # twice the tokens must be this much faster, or they only cost memory
_NO_MEMORY = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")

Forward = Callable[[dict[str, Any]], Any]  # a batch's arrays as tensors to [rows, outputs], all on the device


class Batch(Protocol):
    """Input of one forward pass."""

    def __len__(self) -> int: ...

    @property
    def tokens(self) -> int:
        """Tokens with padding."""
        ...

    @property
    def arrays(self) -> Mapping[str, Ids]:
        """Arguments of the forward function."""
        ...

    def rows(self, start: int, end: int) -> Self:
        """Return a part, whose results are a part of the results."""
        ...


class TorchBatches:
    """A `batches.BatchRunner`: one forward function on one device.

    On a CPU it uses so many threads. Torch has one thread count for all models of a process, so each run sets it again.
    """

    def __init__(self, forward: Forward, device: Any, threads: int = 1) -> None:
        import torch

        self.batch_tokens = BATCH_TOKENS_CPU
        self._torch = torch
        self._forward = forward
        self._device = device
        self._threads = threads
        self._copies = torch.cuda.Stream(device) if device.type == "cuda" else None

    def run(self, batches: Iterator[Batch]) -> Vectors:
        """The rows of all batches, in order; fetched from the device once.

        On a GPU nothing here waits for it: while it computes, the next batch is padded, pinned and copied. Raises
        `DeviceLost` where it computes no more: an error of CUDA stays with the process that had it.
        """
        if self._torch.get_num_threads() != self._threads:
            self._torch.set_num_threads(self._threads)
        try:
            with self._torch.inference_mode():
                rows = [given for batch in batches for given in self._rows_of(batch)]
                return np.asarray(self._torch.cat(rows).float().cpu().numpy(), np.float32)
        except RuntimeError as error:
            if out_of_memory(error) or not _of_the_device(error):
                raise
            message = str(error).partition("\n")[0]
            raise DeviceLost(f"{self._device} computes no more in this process: {message}") from error

    def _rows_of(self, batch: Batch) -> list[Any]:
        """Return the rows of a batch, in parts if the whole does not fit into the device's memory."""
        count = len(batch)
        try:
            return [self._forward(self._on_device(batch))]
        except RuntimeError as error:
            if count == 1 or not out_of_memory(error):
                raise
        self._shrink(batch.tokens)
        rows, start = [], 0
        while start < count:
            end = start + max(1, count * self.batch_tokens // batch.tokens)
            rows += self._rows_of(batch.rows(start, min(end, count)))
            start = end
        return rows

    def _shrink(self, tokens: int) -> None:
        smaller = max(1, tokens // 2)
        if smaller < self.batch_tokens:
            _log.warning(
                "out of memory with %d tokens on %s; continuing with %d per forward pass", tokens, self._device, smaller
            )
            self.batch_tokens = smaller
        if self._device.type == "cuda":
            self._torch.cuda.empty_cache()

    def _on_device(self, batch: Batch) -> dict[str, Any]:
        tensors = {name: self._torch.from_numpy(array) for name, array in batch.arrays.items()}
        if self._copies is None:
            return {name: tensor.to(self._device) for name, tensor in tensors.items()}
        computes = self._torch.cuda.current_stream(self._device)
        with self._torch.cuda.stream(self._copies):
            copied = {
                name: tensor.contiguous().pin_memory().to(self._device, non_blocking=True)
                for name, tensor in tensors.items()
            }
        computes.wait_stream(self._copies)
        for tensor in copied.values():
            tensor.record_stream(computes)  # or its memory is given to the next copy while it is still read
        return copied


def out_of_memory(error: RuntimeError) -> bool:
    """Whether it is out of memory, also by an error of CUDA or its libraries instead of torch's allocator."""
    import torch

    message = str(error)
    return isinstance(error, torch.OutOfMemoryError) or (
        _of_the_device(error) and any(sign in message for sign in _NO_MEMORY)
    )


def _of_the_device(error: RuntimeError) -> bool:
    import torch

    return isinstance(error, torch.AcceleratorError) or "CUDA error" in str(error)


def fastest_batch_tokens(seconds_of: Callable[[int], float], first: int = FIRST_TOKENS, most: int = MOST_TOKENS) -> int:
    """Return the tokens of a forward pass beyond which twice as many are hardly faster or do not fit.

    `seconds_of(tokens)` is the time of one pass. It raises `MemoryError` if the pass does not fit.
    """
    best, rate = first, 0.0
    tokens = first
    while tokens <= most:
        try:
            now = tokens / seconds_of(tokens)
        except MemoryError:
            break
        if now < rate * _WORTH:
            break
        best, rate = tokens, now
        tokens *= 2
    return best
