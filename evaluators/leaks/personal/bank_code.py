"""Codes of a person's bank (BIC, SWIFT, ISO 9362) behind their name: letters alone are a word too often."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.labels import BESIDE
from ragtide.evaluators.leaks.personal.number_detectors import any_number, number_near_label

_LABELS = r"\bbic\b|\bswift\b|bank identifier code|codigo swift|kod swift|codice swift|bankleitzahl"
_WITH_ACCOUNT = r"iban[\s/,&+-]{1,3}(?:(?:and|und|et|y|e|en)\s)?(?:bic|swift)"  # the account stands between the two
# ISO 3166, and XK.
_COUNTRIES = (
    "AD AE AG AI AL AM AO AR AT AU AW AZ BA BB BD BE BF BG BH BI BJ BM BN BO BR BS BT BW BY BZ CA CD CF CG CH CI "
    "CL CM CN CO CR CU CV CW CY CZ DE DJ DK DM DO DZ EC EE EG ES ET FI FJ FO FR GA GB GD GE GG GH GI GL GM GN GQ "
    "GR GT GW GY HK HN HR HT HU ID IE IL IM IN IQ IR IS IT JE JM JO JP KE KG KH KM KN KP KR KW KY KZ LA LB LC LI "
    "LK LR LS LT LU LV LY MA MC MD ME MG MK ML MM MN MO MR MT MU MV MW MX MY MZ NA NC NE NG NI NL NO NP NZ OM PA "
    "PE PF PG PH PK PL PR PS PT PY QA RO RS RU RW SA SC SD SE SG SI SK SL SM SN SO SR SS ST SV SY SZ TC TD TG TH "
    "TJ TL TM TN TO TR TT TW TZ UA UG US UY UZ VA VC VE VG VN VU WS XK YE ZA ZM ZW"
)


def _is_of_country(text: str) -> bool:
    """Whether its fifth and sixth letters are a country."""
    return text[4:6] in _COUNTRIES.split()


_SHAPE = r"(?-i:[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?|[A-Z]{4} [A-Z]{2} [A-Z0-9]{2}(?: [A-Z0-9]{3})?)"
_NAME = "a bank's code (BIC)"
DETECTORS: tuple[Detector, ...] = (
    number_near_label("bank_code", _NAME, _LABELS, _SHAPE, _is_of_country, gap=BESIDE),
    number_near_label(
        "bank_code",
        "a bank's code (BLZ)",
        r"\bblz\b|bankleitzahl",
        r"[0-9]{3} ?[0-9]{3} ?[0-9]{2}",
        any_number,
        gap=BESIDE,
    ),
    number_near_label(
        "bank_code", "a bank's code (IFSC)", r"\bifsc", r"(?-i:[A-Z]{4}0[A-Z0-9]{6})", any_number, gap=BESIDE
    ),
    number_near_label("bank_code", _NAME, _WITH_ACCOUNT, _SHAPE, _is_of_country, gap=r"[^\n]{0,48}?"),
)
