"""Selects the detectors that may find something in a text, in a few passes for all of them."""

from collections.abc import Sequence
from typing import Any

from ragtide.evaluators.leaks.byte_text import ByteText
from ragtide.evaluators.leaks.detector import Detector

_MEMORY = 64 << 20
_SETS = 4
_ALWAYS = r""  # re2 answers None both for "nothing" and for "out of memory": every text matches this


class Gate:
    """RE2 patterns of all detectors, in a few sets.

    One set alone would cost six times as much on random base64, because of its many states. On prose all sets together
    take 15 µs.
    """

    def __init__(self, detectors: Sequence[Detector], memory: int = _MEMORY) -> None:
        each = -(-len(detectors) // _SETS)
        self._sets = [_Set(detectors[first : first + each], first, memory) for first in range(0, len(detectors), each)]

    def open_for(self, shape: ByteText) -> list[int]:
        """Return the indices of detectors that may find something, in order."""
        return [index for one in self._sets for index in one.open_for(shape)]


class _Set:
    """Patterns of consecutive detectors. The first has the index `first`."""

    def __init__(self, detectors: Sequence[Detector], first: int, memory: int) -> None:
        import re2

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = memory
        options.log_errors = False
        self.patterns: Any = re2.Set.SearchSet(options)
        owners: dict[str, list[int]] = {}
        for index, detector in enumerate(detectors, first):
            for pattern in detector.gates:
                owners.setdefault(pattern, []).append(index)
        for pattern in (*owners, _ALWAYS):
            self.patterns.Add(pattern)
        self.patterns.Compile()
        self._owners = [*owners.values(), []]
        self._all = list(range(first, first + len(detectors)))

    def open_for(self, shape: ByteText) -> list[int]:
        matched = self.patterns.Match(shape.data)
        if not matched:
            return self._all
        return sorted({owner for index in matched for owner in self._owners[index]})
