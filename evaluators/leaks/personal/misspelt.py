"""Identity numbers with a wrong check digit: mistyped or invented, they still identify a person."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.personal.number_detectors import number_beside_label

_LEAST_DIGITS, _LEAST_MIXED, _MOST = 9, 7, 18  # characters of digits alone (a date has eight), and with letters
_FEWEST_DIGITS, _FEW = 5, 3  # different characters; fewer are a filler

# Names that no other number has, as spelt without accents.
_LABELS = (
    r"(?-i:\bTIN\b)|\btax (?:id(?:entification)?|payer id)|carte vitale|\butr\b|unique taxpayer|pesel|(?-i:\bNIP\b)|"
    r"\bcpf\b|\bcnpj\b|\bbsn\b|burger service|codice fiscale|cod\.? fisc|steuer id|"
    r"steuerliche identi|"
    r"(?-i:\bNIE\b)|numero de (?:identidad de extranjero|contribuinte)|contribuinte|(?-i:\bNIF\b)|"
    r"securite sociale|(?-i:\bNIR\b)|rijksregister|registre national|\binsz\b|\bniss\b|f.{1,2}dselsn|henkilotunnus|"
    r"\bhetu\b|personal public service|(?-i:\bPPSN?\b)|sozialversicherung|\bsv n|\bahv\b|rodne(?:ho|mu|m)? c|"
    r"\bcnp\b|cod(?:ul)? numeric|\begn\b|\boib\b|\bamka\b|\bafm\b|"
    r"isikukood|asmens kod|personas kod|snils|(?-i:\bINN\b)|"
    r"\btaj\b|adoazonosito|\bjmbg\b|\bemso\b|(?-i:\bCPR\b)|kennital[au]|kimlik|social insurance|(?-i:\bSIN\b)|"
    r"a+dha+r|(?-i:\bTFN\b)|tax file|inland revenue|(?-i:\bIRD\b)|\bnric\b|\bhkid\b|(?-i:\bCURP\b)|\bcui[tl]\b|"
    r"emirates id|iqama|south african id|(?-i:\bNHS\b)"
)


def _is_meant(text: str) -> bool:
    digits = sum(map(str.isdigit, text))
    least = _LEAST_DIGITS if digits == len(text) else _LEAST_MIXED
    return least <= len(text) <= _MOST and digits >= _FEWEST_DIGITS and len(set(text)) > _FEW


DETECTORS: tuple[Detector, ...] = (
    number_beside_label(
        *("national_id", "an identity number", _LABELS),
        r"(?:[A-Z]-)?[A-Z]{0,6}[0-9][0-9A-Z]{0,17}(?:[ ./-](?:[0-9][0-9A-Z]{0,12}|[A-Z]\b)){0,6}",
        _is_meant,
    ),
)
