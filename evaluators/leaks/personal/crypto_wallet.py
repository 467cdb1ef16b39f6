"""Addresses of cryptocurrency wallets: Bitcoin (Base58Check or Bech32) and Ethereum."""

from collections.abc import Iterator
from hashlib import sha256

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span, stands_alone
from evaluators.leaks.patterns import compiled

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_SHAPE = r"\b(?:0x[0-9a-fA-F]{40}|bc1[ac-hj-np-z02-9]{25,87}|[13][1-9A-HJ-NP-Za-km-z]{25,34})\b"


def find(shape: Formatted) -> Iterator[Span]:
    """Addresses on their own; of Base58 ones those whose checksum is right."""
    for match in compiled(_SHAPE).finditer(shape.data):
        start, end = match.span()
        text = shape.text[start:end]
        if stands_alone(shape.text, start, end, "-/+=_") and (text[0] in "0b" or base58check(text)):
            yield Span(start, end)


def base58check(text: str) -> bool:
    """Whether the last four of its 25 bytes are the first of the others' double SHA-256."""
    number = 0
    for character in text:
        number = number * 58 + _BASE58.index(character)
    if number >> 200:
        return False
    data = number.to_bytes(25, "big")
    return sha256(sha256(data[:21]).digest()).digest()[:4] == data[21:]


DETECTORS: tuple[Detector, ...] = (
    Detector(
        "crypto_wallet",
        "a cryptocurrency address",
        (r"0x[0-9a-fA-F]{8}", r"bc1[ac-hj-np-z02-9]{8}", r"\b[13][1-9A-HJ-NP-Za-km-z]{25}"),
        find,
    ),
)
