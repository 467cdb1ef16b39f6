"""Check digits that numbers of several countries share. All take digits without separators."""

from collections.abc import Sequence

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
# Verhoeff's tables: the dihedral group of ten elements, and the permutation applied at each place.
_PRODUCT = (
    *("0123456789", "1234067895", "2340178956", "3401289567", "4012395678"),
    *("5987604321", "6598710432", "7659821043", "8765932104", "9876543210"),
)
_PERMUTED = (
    *("0123456789", "1576283094", "5803796142", "8916043527"),
    *("9453126870", "4286573901", "2793806415", "7046913258"),
)


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit (ISO/IEC 7812-1, annex B)."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum(_DOUBLED[value] for value in values[1::2])) % 10 == 0


def verhoeff(digits: str) -> bool:
    """Whether the last digit is the check digit (Verhoeff 1969)."""
    state = 0
    for place, digit in enumerate(reversed(digits)):
        state = int(_PRODUCT[state][int(_PERMUTED[place % 8][int(digit)])])
    return state == 0


def mod_11_10(digits: str) -> bool:
    """Whether the last digit is the check digit (ISO/IEC 7064, MOD 11,10)."""
    product = 10
    for digit in digits[:-1]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[-1])


def weighted(digits: str, weights: Sequence[int]) -> int:
    """Return the sum of digits times weights. Digits without a weight do not count."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def is_date(month: int, day: int) -> bool:
    """Whether the date exists in some year."""
    return 1 <= month <= 12 and 1 <= day <= (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def has_date(digits: str) -> bool:
    """Whether it begins with YYMMDD."""
    return is_date(int(digits[2:4]), int(digits[4:6]))
