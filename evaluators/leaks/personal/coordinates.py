"""Geographic coordinates that point at a house: to some hundred metres or finer, as decimals or in degrees."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.labels import label_pattern
from ragtide.evaluators.leaks.patterns import compile_pattern

# As `folded` spells them: the sign of degrees is an "o", primes are "?".
_DEGREES = r"\s?(?:o|&deg;|deg\.?|degrees)"
_MINUTES, _SECONDS = r"\s?(?:'|\?|min)", r"\s?(?:\\?\"|''|\?{1,2}|sec)"
_SIXTIETH = r"[0-5]?[0-9]"
_FINE = (
    rf"(?:[0-9]{{1,3}}{_DEGREES}\s?{_SIXTIETH}{_MINUTES}\s?{_SIXTIETH}(?:[.,][0-9]{{1,6}})?(?:{_SECONDS})?|"
    rf"[0-9]{{1,3}}(?:{_DEGREES}\s?|\s){_SIXTIETH}\.[0-9]{{2,6}}(?:{_MINUTES})?|"
    rf"[0-9]{{1,3}}\.[0-9]{{3,15}}(?:{_DEGREES})?)"
)
_SIDE = r"(?:[NSEWO]\b|(?i:north|south|east|west|nord|sud|ost|ovest|ouest|est|norte|sur|sul|este|oeste|leste))"
_BETWEEN = r"(?:\s?[,;/]\s{0,2}|\s{1,2}(?:(?:and|und|et|y|e|en|i)\s)?)"
_WITH_SIDES = rf"\b(?:{_FINE}\s?{_SIDE}{_BETWEEN}{_FINE}\s?{_SIDE}|{_SIDE}\s?-?{_FINE}{_BETWEEN}{_SIDE}\s?-?{_FINE})"

_NUMBER = rf"[+-]?[0-9]{{1,3}}\.[0-9]{{3,15}}(?:{_DEGREES})?"
_PAIR = rf"({_NUMBER})(?:\s?(?:[,;/]|%2[cC])\s{{0,16}}|\s)({_NUMBER})"
_BEFORE, _AFTER = 48, 24
# What says in the words before, or right behind, that two numbers are a place.
_PLACE = (
    r"(?i)(?:gps|coord|koordin|wspolrzedn|\bgeo|\blat\b|latitude|latlo?n|locat|locali[sz]|lokali|ubica|standort|posi|"
    r"pozyc|emplacement|plats|\bmaps?\b|[?&](?:q|ll|center|query|daddr|saddr)=|waypoint|seen|spotted|\bpos\b|"
    r"\bping\b|whereabouts|"
    r"\bpoint\s?\(|\bhome|\blives?\b|\bhere\b|\bhier\b|\bici\b|"
    r"\baqui\b|\btutaj\b|\bmeet|treff|rendez-?vous|\bhouse\b|\bcasa\b|\bmaison\b|\bdom\b|address|adress|pick-?up|"
    r"drop|parked|tracked)[^0-9\n]{0,40}(?:\n\s{0,24})?$"
)
_PLACE_BEHIND = r"(?i)^[\])]?\s?[(\[,-]?\s?(?:lat|gps|coord|wgs)"
# Finer numbers are one where a word leads to a place, in brackets behind a word, or where nothing else stands.
_FINER = 4  # decimals
_LEADING = (
    r"(?i)(?:\b(?:at|near|around|in|bei|an|auf|nach|nahe|au|pres de|en|cerca de|vicino a|a|su|em|naar|op|bij|nabij|w|"
    r"przy|pod|kolo|till|vid)[\s(\[:]{1,3}|/@)$"
)
_ALONE_BEFORE, _ALONE_BEHIND = r"(?:^|[\n|>\"'`]|[A-Za-z]\s\()\s{0,4}$", r"^\s{0,4}(?:$|[\n|<\"'`)])"
# Of a place where nobody lives, and of what a map shows, coordinates are nobody's.
_PUBLIC = (
    r"(?i)\b(?:depots?|stations?|sites?|stores?|warehouses?|plants?|museums?|towers?|bridges?|airports?|harbou?rs?|"
    r"lighthouses?|summits?|peaks?|mountains?|lakes?|(?:city|town) cent(?:re|er)|landmarks?|monuments?|zoom|bbox|"
    r"tiles?|bounds)\b"
)
_PERSONS = (
    r"(?i)\b(?:h(?:is|er)|their|my|your|home|lives?|user|customer|driver|patient|employee|phone|device|tracked)\b"
)
_MEASURED = (
    r"(?i)(?:\bci\b|interval|range|mean|median|std|deviation|loss|score|accura|auc|vector|embed|weight|bound|bbox|"
    r"values?|ratio|price|confidence|points? at x)[^\n]{0,16}$"
)
_LONGER_BEFORE, _LONGER_BEHIND = r"[0-9.][,;]?\s?$", r"^\s?[,;]?\s{0,16}[+-]?[0-9]+\.[0-9]"
_SMALLEST = 1  # degrees: two numbers below are shares of something more often than a place in the Gulf of Guinea
_POLE, _DATE_LINE = 90, 180

_NAMES = (
    r"(?:gps ?)?latitude|\blatitud(?:e|ine)?\b|breitengrad|szerokosc(?: geograficzna)?|breedtegraad|breddgrad|"
    r"(?:gps ?)?longitude|\blongitud(?:e|ine)?\b|langengrad|dlugosc(?: geograficzna)?|lengtegraad|langdgrad"
)
_SHORT = r"\blat\b|\blon\b|\blng\b|\blong\b"  # words of other meanings, too: a sign must follow
_SIGN, _VERB = r"[:=|>]", r"\b(?:is|of|est|es|ist|e|jest)\b"
_KEYED = (
    rf"(?i:(?:{label_pattern(_NAMES)})[\"'*`\\]{{0,4}}\s?(?:{_SIGN}|{_VERB})?|(?:{label_pattern(_SHORT)})[\"'*`\\]{{0,4}}\s?{_SIGN})"
    rf"\s{{0,4}}[\"'*`(\\]{{0,4}}([+-]?{_FINE}(?:\s?{_SIDE})?)"
)
_BOTH_NAMED = rf"(?i:\blat\.? ?({_NUMBER})[,;/ ]{{1,3}}(?:and )?(?:lon|lng|long)\.? ?({_NUMBER}))"
_UNIT = r"(?i)^(?:\s?(?:%|m?s\b|sec|[ckm]?m\b|met|ft\b|feet|inch)|\.?[0-9])"


def _degrees(number: bytes) -> float:
    return abs(float(number.decode("latin-1").rstrip("odegrs&; .")))


def _decimals(number: bytes) -> int:
    return len(number.decode("latin-1").partition(".")[2].rstrip("odegrs&; ."))


def _find_with_sides(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_WITH_SIDES).finditer(shape.data):
        yield Span(*match.span())


def _find_pairs(shape: ByteText) -> Iterator[Span]:
    """Two numbers and no more, within the range of latitudes and longitudes, where something says what they are."""
    for match in compile_pattern(_PAIR).finditer(shape.data):
        low, high = sorted((_degrees(match[1]), _degrees(match[2])))
        possible = low <= _POLE and _SMALLEST <= high <= _DATE_LINE
        if possible and _is_place(shape, match.start(), match.end(), min(_decimals(match[1]), _decimals(match[2]))):
            yield Span(*match.span())


def _is_place(shape: ByteText, start: int, end: int, decimals: int) -> bool:
    before, after = shape.data[max(start - _BEFORE, 0) : start], shape.data[end : end + _AFTER]
    if _is_public(before, after):
        return False
    if compile_pattern(r"[0-9.]$").search(before) or compile_pattern(_MEASURED).search(before):
        return False
    if compile_pattern(_PLACE).search(before) or compile_pattern(_PLACE_BEHIND).search(after):
        return True
    longer = compile_pattern(_LONGER_BEFORE).search(before) or compile_pattern(_LONGER_BEHIND).search(after)
    if longer or decimals < _FINER:
        return False
    alone = compile_pattern(_ALONE_BEFORE).search(before) and compile_pattern(_ALONE_BEHIND).search(after)
    return bool(alone or compile_pattern(_LEADING).search(before))


def _is_public(before: bytes, after: bytes) -> bool:
    near = before.rpartition(b"\n")[2] + after
    return bool(compile_pattern(_PUBLIC).search(near) and not compile_pattern(_PERSONS).search(near))


def _find_keyed(shape: ByteText) -> Iterator[Span]:
    """A latitude or a longitude with its name."""
    for match in compile_pattern(_KEYED).finditer(shape.data):
        start, end = match.span(1)
        whole = int(compile_pattern(r"[0-9]+").search(match[1])[0])
        before, after = shape.data[max(start - _BEFORE, 0) : start], shape.data[end : end + _BEFORE]
        if whole <= _DATE_LINE and not compile_pattern(_UNIT).search(after) and not _is_public(before, after):
            yield Span(start, end)
    for match in compile_pattern(_BOTH_NAMED).finditer(shape.data):
        yield from (Span(*match.span(1)), Span(*match.span(2)))


_NAME = "geographic coordinates"
DETECTORS: tuple[Detector, ...] = (
    Detector(
        *("coordinates", _NAME),
        (r"[0-9]\s?(?:o|&deg;|deg).{0,16}[NSEWOnsewo]", r"[0-9]\.[0-9]{2}.{0,12}[NSEWOnsewo]"),
        _find_with_sides,
    ),
    Detector("coordinates", _NAME, (r"[0-9]\.[0-9]{3}",), _find_pairs),
    Detector("coordinates", _NAME, (rf"(?i:{label_pattern(_NAMES)}|{label_pattern(_SHORT)})",), _find_keyed),
)
