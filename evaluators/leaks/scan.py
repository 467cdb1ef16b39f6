"""Scans a text once for all kinds of personal data and secrets."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import NamedTuple

from ragtide.evaluators.leaks import personal, secrets
from ragtide.evaluators.leaks.allowlist import Allowlist
from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import fold
from ragtide.evaluators.leaks.gate import Gate
from ragtide.evaluators.leaks.label_lines import label_lines
from ragtide.evaluators.leaks.lists import further_items
from ragtide.evaluators.leaks.personal.numbering import TooMany

DEFAULT_REGIONS = ("US",)
PHONE = "phone"  # the kind whose detector stops after so many candidates

_PERSONAL = personal.detectors(DEFAULT_REGIONS)
PERSONAL: tuple[str, ...] = tuple(dict.fromkeys(detector.kind for detector in _PERSONAL))
# Places, devices, vehicles and banks: of a person in few texts only, so that the default leaves them out.
SELDOM_PERSONAL: tuple[str, ...] = ("coordinates", "mac", "imei", "sim_card", "vin", "bank_code", "us_routing")
USUAL: tuple[str, ...] = tuple(kind for kind in PERSONAL if kind not in SELDOM_PERSONAL)
SECRETS: tuple[str, ...] = tuple(dict.fromkeys(detector.kind for detector in secrets.DETECTORS))
NAMES: Mapping[str, str] = {detector.kind: detector.name for detector in (*secrets.DETECTORS, *_PERSONAL)}


@dataclass(frozen=True, slots=True)
class Hit:
    """A value of one kind at [start, end) (character offsets)."""

    kind: str
    start: int
    end: int


class Scan(NamedTuple):
    """All findings of a text, by position, and the kinds for which the search was incomplete.

    These are telephone numbers if too many places look like one, and all kinds if too many values are apart from their
    labels.
    """

    hits: tuple[Hit, ...]
    partial: frozenset[str]


def scanner(regions: Sequence[str] = DEFAULT_REGIONS) -> Callable[[str], Scan]:
    """Return a function that finds every value of every kind, in order, without overlaps: the more certain kind wins.

    `regions` are the countries whose telephone numbers are found without a leading "+" or 0, or words of the country
    beside them. The function is the same each time, so that `Shared.once` can share its results.
    """
    return _scanner(tuple(dict.fromkeys(regions)))


@lru_cache(maxsize=8)  # of its own: scanner() and scanner(["US"]) must be one function
def _scanner(regions: tuple[str, ...]) -> Callable[[str], Scan]:
    detectors = (*secrets.DETECTORS, *personal.detectors(regions))
    return partial(_scan, detectors, Gate(detectors))


def _scan(detectors: Sequence[Detector], gate: Gate, text: str) -> Scan:
    shape = fold(text)
    taken = bytearray(len(text))
    hits, complete = _find(detectors, gate, shape, taken)
    labelled = label_lines(shape)
    partly = frozenset[str]()
    if labelled:
        behind, all_of_them = _find(detectors, gate, fold(labelled.text), bytearray(len(labelled.text)))
        complete = complete and all_of_them
        for hit in behind:
            place = labelled.original(hit.start, hit.end)
            if place and 1 not in taken[place.start : place.end]:
                taken[place.start : place.end] = b"\x01" * (place.end - place.start)
                hits.append(Hit(hit.kind, *place))
        partly = frozenset() if labelled.complete else frozenset(NAMES)
    if not complete:
        partly |= {PHONE}
    return Scan(tuple(sorted(hits, key=lambda hit: hit.start)), partly)


def _find(detectors: Sequence[Detector], gate: Gate, shape: ByteText, taken: bytearray) -> tuple[list[Hit], bool]:
    """Return the findings in free places, and whether the search was complete."""
    hits: list[Hit] = []
    complete = True
    for index in gate.open_for(shape):
        detector = detectors[index]
        try:
            for start, end in detector.find(shape):
                # Lazily: the values behind a place already taken were looked at with the first one of their list.
                for place in chain((Span(start, end),), further_items(shape, Span(start, end))):
                    if 1 in taken[place.start : place.end]:
                        break
                    taken[place.start : place.end] = b"\x01" * (place.end - place.start)
                    hits.append(Hit(detector.kind, *place))
        except TooMany:
            complete = False
    return hits, complete


class Leaks(NamedTuple):
    """Findings of the wanted kinds in one text; see `Scan`."""

    hits: tuple[Hit, ...]
    complete: bool

    @property
    def any(self) -> bool | None:
        """Whether there are findings. None if there are none and the search was incomplete."""
        return True if self.hits else False if self.complete else None


def leaks_of(text: str, scan: Scan, kinds: Collection[str], allowlist: Allowlist | None = None) -> Leaks:
    """Select the findings of these kinds that are not allowed."""
    hits = tuple(
        hit
        for hit in scan.hits
        if hit.kind in kinds and not (allowlist and allowlist.holds(hit.kind, text[hit.start : hit.end]))
    )
    return Leaks(hits, scan.partial.isdisjoint(kinds))
