"""Which detectors a text is worth showing to: one pass over it for all of them."""

from collections.abc import Sequence
from typing import Any

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted

_MEMORY = 64 << 20
_ALWAYS = r""  # re2 answers None both for "nothing" and for "out of memory": every text matches this


class Gate:
    """A set of RE2 patterns that answers for all detectors at once."""

    def __init__(self, detectors: Sequence[Detector], memory: int = _MEMORY) -> None:
        import re2

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = memory
        options.log_errors = False
        self._patterns: Any = re2.Set.SearchSet(options)
        owners: dict[str, list[int]] = {}
        for index, detector in enumerate(detectors):
            for pattern in detector.gates:
                owners.setdefault(pattern, []).append(index)
        for pattern in (*owners, _ALWAYS):
            self._patterns.Add(pattern)
        self._patterns.Compile()
        self._owners = [*owners.values(), []]
        self._all = list(range(len(detectors)))

    def open_for(self, shape: Formatted) -> list[int]:
        """Indices of the detectors that may find something, in order; those left out find nothing."""
        matched = self._patterns.Match(shape.data)
        if not matched:
            return self._all
        return sorted({owner for index in matched for owner in self._owners[index]})
