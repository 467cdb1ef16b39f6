"""Says whether the contexts have a quantity, in any notation, rounded, converted, or computed from them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from math import floor, log10
from typing import TypeVar

from ragtide.evaluators.support.quantities import CLOCK, PERCENT, Quantity

MOST_OPERANDS = 24  # numbers of a chunk from which others are computed: with more, any number is a sum of some two
MOST_CHUNKS = 50  # from whose numbers others are computed
MIN_DIGITS = 2  # significant digits of a rounded or computed number: one digit meets by chance
_CONVERTED = 0.02  # relative tolerance between units: 10 km are 6.2 miles
_OF_PERCENT = 0.5  # percentages are given to whole numbers
_SAME = 1e-9
_MOST_READINGS = 2  # of a number that may be rounded: a decade has ten
_NEAR = 4  # numbers of a chunk behind each, with which others are computed
_YEAR = 12.0  # months
Of = TypeVar("Of")


class KnownQuantities:
    """The quantities of the contexts, by chunk."""

    def __init__(self, chunks: Sequence[Sequence[Quantity]]) -> None:
        self.chunks = chunks
        self.plain: set[float] = set()  # without a unit
        self.all: set[float] = set()  # as they stand, whatever their unit
        self.not_percent: set[float] = set()
        self._by_kind: dict[str, set[float]] = {}
        self._by_unit: dict[tuple[str, float], set[float]] = {}
        for chunk in chunks:
            for one in chunk:
                self.all.update(one.values)
                if one.kind != PERCENT:
                    self.not_percent.update(one.values)
                if one.kind:
                    self._by_kind.setdefault(one.kind, set()).update(one.bases)
                    self._by_unit.setdefault((one.kind, one.factor), set()).update(one.bases)
                else:
                    self.plain.update(one.values)
        self._sorted: dict[object, list[float]] = {}
        self._results: dict[str, set[float]] = {}

    def have(self, one: Quantity) -> bool:
        """Whether the contexts have this quantity, give or take its rounding and the conversion of units."""
        if not one.kind:
            return any(value in self.not_percent for value in one.values) or self._rounded(one) or self._share(one)
        same = self._by_kind.get(one.kind, ())
        if any(base in same for base in one.bases):
            return True
        if one.kind == CLOCK:
            return any(value / 60 in self.plain or (value / 60) % 12 in self.plain for value in one.values)
        if any(value in self.plain for value in one.values):
            return True
        if one.kind == PERCENT and any(value / 100 in self.plain for value in one.values):
            return True
        return self._rounded(one) or any(
            _has_near(self._in_order((kind, factor), bases), base, _CONVERTED * abs(base))
            for (kind, factor), bases in self._by_unit.items()
            if kind == one.kind and factor != one.factor
            for base in one.bases
        )

    def compute(self, one: Quantity) -> bool:
        """Whether the quantity is a sum, a difference, a total or a percentage of numbers that stand in one chunk."""
        if is_year(one):
            return False
        if one.kind == "months" and one.factor == _YEAR and self._between_years(one):
            return True
        values = self._in_order(("computed", one.kind), self._computed(one.kind))
        is_whole = all(value.is_integer() for value in one.values)
        tolerance = (_OF_PERCENT if is_whole else _OF_PERCENT / 10) if one.kind == PERCENT else 0.0
        return any(
            _has_near(values, value, max(tolerance, _SAME * abs(value)))
            for value in one.bases
            if significant_digits(value) >= MIN_DIGITS
        )

    def _between_years(self, one: Quantity) -> bool:
        """Whether two years of a chunk lie so far apart."""
        return any(
            abs(first.values[0] - second.values[0]) in one.values
            for chunk in self.chunks[:MOST_CHUNKS]
            for first, second in _near_pairs([other for other in chunk if is_year(other)])
        )

    def _computed(self, kind: str) -> set[float]:
        if kind not in self._results:
            self._results[kind] = {value for chunk in self.chunks[:MOST_CHUNKS] for value in _computed(chunk, kind)}
        return self._results[kind]

    def _share(self, one: Quantity) -> bool:
        """Whether a number between 0 and 1 stands there as a percentage: half is 50 %."""
        percents = self._by_kind.get(PERCENT, ())
        return any(0 < value < 1 and value * 100 in percents for value in one.values)

    def _rounded(self, one: Quantity) -> bool:
        """Whether a number of the contexts gives this one when rounded to its significant digits."""
        if is_year(one) or len(one.values) > _MOST_READINGS:
            return False
        for value, base in zip(one.values, one.bases, strict=True):
            digits = significant_digits(value)
            if digits < MIN_DIGITS or not value:
                continue
            step = 10.0 ** (floor(log10(abs(value))) - digits + 1)
            if step >= 1 and value < 1_000:  # 120 is no rounding of 118
                continue
            half = step / 2 * (base / value)
            if self._near(one.kind, base, abs(half)):
                return True
        return False

    def _near(self, kind: str, base: float, tolerance: float) -> bool:
        every = self._by_kind.get(kind, set()) if kind else self.not_percent
        return _has_near(self._in_order(kind, every), base, tolerance)

    def _in_order(self, key: object, values: set[float]) -> list[float]:
        if key not in self._sorted:
            self._sorted[key] = sorted(values)
        return self._sorted[key]


def _has_near(values: Sequence[float], base: float, tolerance: float) -> bool:
    """Whether one of the sorted values is within the tolerance."""
    return bisect_left(values, base - tolerance - _SAME) < bisect_right(values, base + tolerance + _SAME)


def is_year(one: Quantity) -> bool:
    """Whether it is a year in four digits."""
    return not one.kind and one.end - one.start == 4 and len(one.values) == 1 and 1_000 <= one.values[0] <= 2_100


def significant_digits(value: float) -> int:
    """Count the digits of a number without zeros at its ends: 1,200 has 2, 0.05 one."""
    digits = f"{abs(value):.10g}"
    return len(digits.partition("e")[0].replace(".", "").strip("0")) or 1


def _near_pairs(values: Sequence[Of]) -> Iterator[tuple[Of, Of]]:
    """Yield the pairs of values that stand near each other: of many numbers, some two give any result."""
    for place, one in enumerate(values):
        yield from ((one, other) for other in values[place + 1 : place + 1 + _NEAR])


def _computed(chunk: Sequence[Quantity], kind: str) -> Iterator[float]:
    if kind == PERCENT:
        plain = [one.bases[0] for one in chunk if one.kind != PERCENT][:MOST_OPERANDS]
        for one, other in _near_pairs(plain):
            low, high = sorted((abs(one), abs(other)))
            if low:
                yield from (100 * low / high, 100 * (high - low) / low, 100 * (high - low) / high)
        plain = [one.bases[0] for one in chunk if one.kind == PERCENT][:MOST_OPERANDS]
    else:
        plain = [one.bases[0] for one in chunk if one.kind == kind][:MOST_OPERANDS]
    if len(plain) > 2:
        yield sum(plain)
    for one, other in _near_pairs(plain):
        yield one + other
        yield abs(one - other)
