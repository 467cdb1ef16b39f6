"""Numbers of documents, accounts, devices and vehicles, and dates of birth: a label beside them tells."""

from collections.abc import Iterator

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.patterns import compiled
from evaluators.leaks.personal.checks import luhn
from evaluators.leaks.personal.numbered import any_number, told

_MONTHS = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|ene|abr|ago|dic|janv|f.{1,2}v|avr|mai|juin|juil|ao|d.{1,2}c|"
    r"m.{1,2}r|okt|dez|gen|mag|giu|lug|set|ott)[a-z]{0,9}\.?"
)
_DATE = (
    r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})|"
    rf"(?i:[0-9]{{1,2}}(?:st|nd|rd|th|\.)?(?: of| de)?[ -]{_MONTHS}(?: de)?,?[ -][0-9]{{4}}|"
    rf"{_MONTHS} [0-9]{{1,2}}(?:st|nd|rd|th)?,? [0-9]{{4}})"
)
# Not "born on": encyclopaedias are full of it.
_BIRTH = (
    r"date of birth|birth ?date|birthday|\bd\.?o\.?b\b\.?|geburtsdatum|geb\. am|date de naissance|fecha de nacimiento|"
    r"data di nascita|data de nascimento|geboortedatum|data urodzenia|f.{1,2}delsedatum"
)
_VIN_VALUES = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", (*range(1, 9), *range(1, 6), 7, 9, *range(2, 10)), strict=True))
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def vin(text: str) -> bool:
    """Whether the ninth character checks the others (49 CFR 565)."""
    values = [int(character) if character.isdigit() else _VIN_VALUES[character] for character in text]
    rest = sum(value * weight for value, weight in zip(values, _VIN_WEIGHTS, strict=True)) % 11
    return "0123456789X"[rest] == text[8]


def _birth(shape: Formatted) -> Iterator[Span]:
    pattern = compiled(rf"(?i:(?:\b|_)(?:{_BIRTH}))[^0-9\n]{{0,30}}?\b({_DATE})\b")
    for match in pattern.finditer(shape.data):
        yield Span(*match.span(1))


_LICENCE = (
    r"driv(?:er|ing)(?:'?s)?[ _-]?(?:licen[cs]e|permit)|f.{1,2}hrerschein|permis de conduire|licencia de conducir|"
    r"patente di guida|rijbewijs|\bdvla\b|\bDL ?(?:no|num|#)"
)
_IDENTITY = (
    r"national[ _-]?id|identity[ _-]?(?:card|number|document)|\bid[ _-](?:card|document)|personalausweis|"
    r"carte d.identit|documento d.identit|citizen id|residence permit|social[ _-]security[ _-]n"
)

DETECTORS: tuple[Detector, ...] = (
    told(
        "passport",
        "a passport number",
        r"passport|reisepass|passeport|pasaporte|passaporto|paszport",
        r"[A-Z]{1,3} ?[0-9]{6,9}|[A-Z0-9]{2}[0-9]{6,7}|[A-Z][0-9A-Z]{8}",
        any_number,
    ),
    told(
        *("driving_licence", "a driving licence number", _LICENCE),
        *(r"[A-Z0-9]{1,5}(?:[ -]?[A-Z0-9]{2,6}){1,4}", any_number),
    ),
    told(
        "bank_account",
        "a bank account number",
        r"(?:bank|checking|savings|deposit) account|account[ _-]?(?:no\b|nr|num|#)|\bacct|kontonummer|sort code",
        r"[0-9]{6,17}|[0-9]{2}-[0-9]{2}-[0-9]{2}(?:[ ,/]{1,2}[0-9]{8})?|[0-9]{2,4}(?:[ -][0-9]{3,4}){2,3}",
        any_number,
    ),
    told(
        "medical_record",
        "a medical record number",
        r"medical record|\bmrn\b|patient[ _-]?(?:id|no|num)|health (?:card|insurance)|insurance (?:id|policy|member)|"
        r"krankenversicher|versichertenn",
        r"[A-Z]{0,3}-?[0-9]{5,12}|[0-9]{3,4}(?:[ -][0-9]{3,4}){2}",
        any_number,
    ),
    told("imei", "a device's IMEI", r"\bimei", r"[0-9]{15}|[0-9]{2}[ -][0-9]{6}[ -][0-9]{6}[ -][0-9]", luhn),
    told(
        "mac",
        "a device's network address",
        r"\bmac\b|hardware addr|ethernet addr|physical addr|\bbssid\b|hwaddr|bluetooth addr|\bether\b",
        r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}|(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}",
        any_number,
    ),
    told("vin", "a vehicle's number", r"\bvin\b|vehicle id|chassis|fahrgestell", r"[A-HJ-NPR-Z0-9]{17}", vin),
    told(
        "licence_plate",
        "a licence plate",
        r"(?:licen[cs]e|number|registration) plate|kennzeichen|plate (?:no|num)|matr.cula|immatriculation",
        r"[A-Z]{1,3}[ -]?[A-Z0-9]{1,4}[ -]?[0-9A-Z]{2,4}|[0-9]{1,4}[ -]?[A-Z]{2,3}[ -]?[0-9]{0,4}",
        any_number,
    ),
    Detector("birth_date", "a date of birth", (rf"(?i:{_BIRTH})",), _birth),
    told(
        "national_id",
        "an identity number",
        _IDENTITY,
        r"[A-Z]{0,3}[0-9]{6,14}[A-Z]?|[0-9]{2,4}(?:[ .-][0-9]{2,6}){2,3}|[A-Z][A-Z0-9]{7,11}",
        any_number,
    ),
)
