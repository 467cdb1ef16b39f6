"""Expiry dates of payment cards near their number or name: food and passports expire, too."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

_CALLED = (
    r"(?:\b|_)(?:exp(?:\.|iry|ires|iration)?(?:[ _-]?date)?|valid (?:thru|until|to|through)|good thru|gultig bis|"
    r"ablaufdatum|"
    r"verfallsdatum|(?:date d')?expiration|expire le|valable jusqu'au|caducidad|vencimiento|validade|validez|scadenza|"
    r"geldig tot|vervaldatum|wazna do|data waznosci|giltig till|gyldig til)"
)
_MONTH = r"(?:0?[1-9]|1[0-2]) ?[/-] ?(?:20)?[2-4][0-9]"
_EXPIRY = rf"(?i){_CALLED}[\"'`*:=>,| ]{{0,8}}(?:is |on |est |ist )?[\"']?\b({_MONTH})\b"
_CARD = (
    r"(?i)\bcards?\b|\b(?:visa|mastercard|amex|maestro|discover|cc|cvv|cvc|pan)\b|card_?n|kredit|karte|\bcarte\b|"
    r"tarjeta|\bcarta\b|"
    r"cartao|kaart|kart[ay]|kort|[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{1,7}|"
    r"3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}"
)
_BEFORE, _AFTER = 64, 32


def find(shape: ByteText) -> Iterator[Span]:
    """A month and a year."""
    for match in compile_pattern(_EXPIRY).finditer(shape.data):
        near = shape.data[max(match.start() - _BEFORE, 0) : match.end() + _AFTER]
        if compile_pattern(_CARD).search(near):
            yield Span(*match.span(1))


DETECTORS: tuple[Detector, ...] = (
    Detector("card_expiry", "a payment card's expiry date", (rf"(?i){_CALLED}.{{0,16}}[0-9] ?[/-] ?[0-9]{{2}}",), find),
)
