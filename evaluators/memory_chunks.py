"""A micro-batch in portions: what models make of one fits into the memory that is set, and goes before the next."""

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
    """Consecutive traces, and what a model is given for them: each key once."""

    traces: range
    keys: Sequence[Key]
    size_bytes: int


def memory_chunks(keys: Sequence[Mapping[Key, int]], most_bytes: int, first: int = 0) -> Iterator[MemoryChunk[Key]]:
    """All traces in order, as many in a portion as fit, one at least. `keys`: those of each trace from `first` on, with
    the size of each.
    """
    start, held, size = first, dict[Key, int](), 0
    for i, own in enumerate(keys, start=first):
        more = sum(own_bytes for key, own_bytes in own.items() if key not in held)
        if held and size + more > most_bytes:
            yield MemoryChunk(range(start, i), list(held), size)
            start, held, size = i, {}, 0
            more = sum(own.values())
        held.update(own)
        size += more
    yield MemoryChunk(range(start, first + len(keys)), list(held), size)


def size_of_row(characters: int, columns: int) -> int:
    """Bytes of a text or an ask of so many characters, of which a model makes so many numbers."""
    return characters * PER_CHARACTER + columns * PER_NUMBER + PER_ROW


def prefetch_or_bisect(
    fetch: Callable[[Sequence[Key]], None], keys: Sequence[Key], where: Callable[[BaseException], str]
) -> None:
    """`fetch` all keys at once; where that fails, its halves, down to the keys that it fails on.

    Whoever needs one of those meets the error again. What fails on everything is given up. `where` puts an error into
    words. Raises `DeviceLost`.
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
                _log.warning("a model failed on %d texts at once, going on in halves: %s", len(some), where(error))
            if len(some) > 1:
                waiting += some[len(some) // 2 :], some[: len(some) // 2]
