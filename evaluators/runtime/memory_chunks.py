"""Splits a micro-batch into portions whose model inputs and outputs fit into the memory limit."""

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ragtide.evaluators.errors import ends_process

_log = logging.getLogger(__name__)
Key = TypeVar("Key", bound=Hashable)

# Bytes that a text or an ask takes while a model works on it: measured with MiniLM on texts of 12 to 1,000 characters.
PER_CHARACTER = 40  # of its tokens, as the tokenizer and as Python have them
PER_NUMBER = 16  # of a row of float32: as it was computed, put into order, joined and kept
PER_ROW = 1_500  # of its lists, its arrays and its places in dictionaries

MOST_FAILURES = 64  # of a model's calls for one portion: three bad keys among a million are found with as many


@dataclass(frozen=True, slots=True)
class MemoryChunk(Generic[Key]):
    """Consecutive traces, and the distinct model inputs for them."""

    traces: range
    keys: Sequence[Key]
    size_bytes: int


def memory_chunks(keys: Sequence[Mapping[Key, int]], most_bytes: int, first: int = 0) -> Iterator[MemoryChunk[Key]]:
    """Split all traces, in order, into portions of at least one trace.

    `keys` are the inputs of each trace from `first` on, with their sizes.
    """
    start, collected, size = first, dict[Key, int](), 0
    for i, own in enumerate(keys, start=first):
        more = sum(own_bytes for key, own_bytes in own.items() if key not in collected)
        if collected and size + more > most_bytes:
            yield MemoryChunk(range(start, i), list(collected), size)
            start, collected, size = i, {}, 0
            more = sum(own.values())
        collected.update(own)
        size += more
    yield MemoryChunk(range(start, first + len(keys)), list(collected), size)


def size_of_row(characters: int, columns: int) -> int:
    """Estimate the bytes of a text or ask with so many characters and output columns."""
    return characters * PER_CHARACTER + columns * PER_NUMBER + PER_ROW


def prefetch_or_bisect(
    fetch: Callable[[Sequence[Key]], None], keys: Sequence[Key], where: Callable[[BaseException], str]
) -> None:
    """Call `fetch` with all keys. If it fails, call it with halves, down to the keys that fail.

    The error recurs for whoever needs such a key. If everything fails, it gives up. `where` describes an error. Raises
    `DeviceLost`.
    """
    waiting, failures = [keys] if keys else [], 0
    while waiting and failures < MOST_FAILURES:
        some = waiting.pop()
        try:
            fetch(some)
        except BaseException as error:  # code of others, which may break on one text
            if ends_process(error):
                raise
            failures += 1
            if failures == 1:
                _log.warning("a model failed on %d texts at once; retrying in halves: %s", len(some), where(error))
            if len(some) > 1:
                waiting += some[len(some) // 2 :], some[: len(some) // 2]
