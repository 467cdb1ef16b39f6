"""Addresses of cryptocurrency wallets, by prefix, checksum or label."""

from collections.abc import Iterator
from hashlib import sha256

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.labels import label_pattern
from ragtide.evaluators.leaks.patterns import compile_pattern

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_RIPPLE = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
# Ethereum and its kin; Bech32 of Bitcoin, Litecoin, Cardano; Monero.
_MARKED = (
    r"\b(?:0x[0-9a-fA-F]{40}|(?:bc|ltc)1[ac-hj-np-z02-9]{25,87}|(?:addr|stake)1[ac-hj-np-z02-9]{50,110}|"
    r"[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93})\b"
)
# Bitcoin, Litecoin, Dogecoin, Tron, Ripple.
_CHECKED = r"\b[13LMDATr][1-9A-HJ-NP-Za-km-z]{24,34}\b"
_WALLET = r"solana|\bsol\b|phantom|wallet|crypto"
_KEY_BYTES = 32


def find(shape: ByteText) -> Iterator[Span]:
    """Addresses on their own; of Base58 ones those whose checksum is right."""
    for match in compile_pattern(_MARKED).finditer(shape.data):
        if stands_alone(shape.text, match.start(), match.end(), "_"):
            yield Span(*match.span())
    for match in compile_pattern(_CHECKED).finditer(shape.data):
        text = match[0].decode("latin-1")
        if base58check(text, _RIPPLE if text[0] == "r" else _BASE58):
            yield Span(*match.span())


def base58check(text: str, alphabet: str = _BASE58) -> bool:
    """Whether the last four of its 25 bytes are the first of the others' double SHA-256."""
    number = _number(text, alphabet)
    if number >> 200:
        return False
    data = number.to_bytes(25, "big")
    return sha256(sha256(data[:21]).digest()).digest()[:4] == data[21:]


def _number(text: str, alphabet: str) -> int:
    number = 0
    for character in text:
        number = number * 58 + alphabet.index(character)
    return number


def _find_solana(shape: ByteText) -> Iterator[Span]:
    """32 bytes in Base58, without a checksum: a label must be near."""
    pattern = rf"(?i:{label_pattern(_WALLET)})[^\n]{{0,40}}?\b([1-9A-HJ-NP-Za-km-z]{{43,44}})\b"
    for match in compile_pattern(pattern).finditer(shape.data):
        length = (_number(match[1].decode("latin-1"), _BASE58).bit_length() + 7) // 8
        if length == _KEY_BYTES:
            yield Span(*match.span(1))


_NAME = "a cryptocurrency address"
DETECTORS: tuple[Detector, ...] = (
    Detector(
        *("crypto_wallet", _NAME),
        (
            *(
                r"0x[0-9a-fA-F]{8}",
                r"(?:bc|ltc|addr|stake)1[ac-hj-np-z02-9]{8}",
                r"[48][0-9AB][1-9A-HJ-NP-Za-km-z]{93}",
            ),
            r"\b[13LMDATr][1-9A-HJ-NP-Za-km-z]{24}",
        ),
        find,
    ),
    Detector("crypto_wallet", _NAME, (rf"(?i:{_WALLET})",), _find_solana),
)
