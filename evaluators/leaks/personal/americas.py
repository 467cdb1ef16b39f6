"""National numbers of the Americas. Rules of their check digits as the issuing offices publish them."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.personal.checks import has_date, luhn, weighted
from ragtide.evaluators.leaks.personal.number_detectors import (
    any_number,
    number_beside_label,
    number_by_shape,
    number_near_label,
)

_CURP = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ"
_RUT = "0123456789K"


def _sin(digits: str) -> bool:
    return len(set(digits)) > 1 and luhn(digits)  # 0 begins those of examples


def _two_checks(digits: str, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
    """Whether both last digits check the others, each 11 less the weighted sum modulo 11."""
    rests = [weighted(digits, weights) % 11 for weights in (first, second)]
    checks = "".join(str(11 - rest if rest > 1 else 0) for rest in rests)
    return digits.endswith(checks) and len(set(digits)) > 1


def _cpf(digits: str) -> bool:
    return _two_checks(digits, tuple(range(10, 1, -1)), tuple(range(11, 1, -1)))


def _cnpj(digits: str) -> bool:
    first = (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)
    return _two_checks(digits, first, (6, *first))


def _curp(text: str) -> bool:
    total = sum(_CURP.index(character) * (18 - place) for place, character in enumerate(text[:17]))
    return has_date(text[4:10]) and (10 - total % 10) % 10 == int(text[17])


def _cuit(digits: str) -> bool:
    rest = weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return digits[:2] in {"20", "23", "24", "27", "30", "33", "34"} and "09987654321"[rest] == digits[10]


def _rut(text: str) -> bool:
    total = sum(int(digit) * (2 + place % 6) for place, digit in enumerate(reversed(text[:-1])))
    return _RUT[(11 - total % 11) % 11] == text[-1]


def _itin(digits: str) -> bool:
    group = int(digits[3:5])
    return digits[0] == "9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or group >= 94)


def routing(digits: str) -> bool:
    """Whether a Federal Reserve district gives out such numbers and the check digit is right (ABA)."""
    district = int(digits[:2])
    given_out = 1 <= district <= 12 or 21 <= district <= 32 or 61 <= district <= 72
    return given_out and weighted(digits, (3, 7, 1) * 3) % 10 == 0


def _dated_rfc(text: str) -> bool:
    return has_date(text[4:10])


_TAXPAYER = r"\bitin\b|taxpayer id|individual tax|\bssn|social security|\btin\b|tax id"
_TEN = r"[0-9]{2}\.?[0-9]{3}\.?[0-9]{3}"

DETECTORS: tuple[Detector, ...] = (
    number_near_label("us_itin", "a US taxpayer number", _TAXPAYER, r"9[0-9]{2}[ -]?[0-9]{2}[ -]?[0-9]{4}", _itin),
    number_by_shape(
        *("us_medicare", "a US Medicare number"),
        r"[1-9][AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y][0-9]-?[AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y][0-9]-?[AC-HJKMNP-RT-Y]{2}[0-9]{2}",
        any_number,
    ),
    number_beside_label(
        "us_routing",
        "a US bank routing number",
        r"routing|\baba\b|\brtn\b|transit (?:no|num)",
        r"[0-9]{9}|[0-9]{4}[ -][0-9]{4}[ -][0-9]",
        routing,
    ),
    number_beside_label(
        "us_ein",
        "a US employer number",
        r"\bf?ein\b|employer id(?:entification)?|\btax id(?:entification)?",
        r"[0-9]{2}-?[0-9]{7}",
    ),
    number_near_label(
        "ca_sin",
        "a Canadian insurance number",
        r"social insurance|\bsin (?:no|num)|(?-i:\bSIN\b|\bNAS\b)|\bsin[\"']?(?: (?:no|number))?\.?\s?[:=#>]|"
        r"\bnas[\"']?\s?[:=>]|assurance sociale",
        r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}",
        _sin,
    ),
    number_by_shape("br_cpf", "a Brazilian taxpayer number", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", _cpf),
    number_near_label("br_cpf", "a Brazilian taxpayer number", r"\bcpf", r"[0-9]{9}-?[0-9]{2}", _cpf),
    number_beside_label(
        *("br_rg", "a Brazilian identity number", r"(?-i:\bRG\b)|\brg\b[\"']?\s?[:=]|registro geral|\bidentidade"),
        r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Xx]|[0-9]{8,9}",
    ),
    number_by_shape("br_cnpj", "a Brazilian company number", r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}", _cnpj),
    number_near_label("br_cnpj", "a Brazilian company number", r"\bcnpj", r"[0-9]{14}", _cnpj),
    number_by_shape(
        "mx_curp",
        "a Mexican population number",
        r"[A-Z][AEIOUX][A-Z]{2}[0-9]{6}[HMX][A-Z]{2}[B-DF-HJ-NP-TV-Z]{3}[0-9A-Z][0-9]",
        _curp,
        unlike=True,
    ),
    number_near_label("mx_rfc", "a Mexican taxpayer number", r"\brfc\b", r"[A-Z&]{4}[0-9]{6}[0-9A-Z]{3}", _dated_rfc),
    number_by_shape("ar_cuit", "an Argentine taxpayer number", r"[0-9]{2}-[0-9]{8}-[0-9]", _cuit),
    number_near_label(
        "ar_cuit", "an Argentine taxpayer number", r"\bcui[tl]\b", r"[0-9]{2}[ -]?[0-9]{8}[ -]?[0-9]", _cuit
    ),
    number_beside_label(
        "ar_dni",
        "an Argentine identity number",
        r"\bd\.?n\.?i\b\.?|documento nacional(?: de identidad)?|\bDNI peruano",
        _TEN,
    ),
    number_by_shape("cl_rut", "a Chilean identity number", r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]", _rut),
    number_near_label(
        "cl_rut",
        "a Chilean identity number",
        r"\br\.?u\.?t\b|(?-i:\bRUN\b)|\brun\b[\"']?\s?[:=>]|\brol unico",
        r"[0-9]{7,8}-?[0-9Kk]",
        _rut,
    ),
    number_beside_label(
        *("co_cedula", "a Colombian identity number", r"cedula(?: de (?:ciudadania|identidad|extranjeria))?|\bc\.c\b"),
        r"[0-9]{1,3}(?:\.[0-9]{3}){2,3}|[0-9]{6,10}",
    ),
)
