"""One-time codes, as messages bring them for a login or a payment, beside their name."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.labels import BESIDE, is_counted, label_pattern, search_by_label
from ragtide.evaluators.leaks.patterns import compile_pattern

_LABELS = (
    r"\botp\b|\bpasscode|\btotp\b|one time (?:pass ?code|pass ?word|code|pin)|(?:verification|verify|confirmation|"
    r"authentication|"
    r"authenticator|authorization|security|log ?in|sign ?in|access|recovery|backup|activation|sms|mfa|2fa|"
    r"(?:two|multi) factor(?: authentication)?|whatsapp) code|\b2fa\b|\bmfa\b|\bmtan\b|\btan\b|"
    r"(?:bestatigungs|freischalt|aktivierungs|verifizierungs|sicherheits|anmelde|freigabe|zugangs|einmal)"
    r"(?:code|passwort|kennwort)|"
    r"code (?:de |d'|a )(?:verification|confirmation|securite|validation|connexion|acces|usage unique)|"
    r"codigo (?:de )?(?:verificacion|confirmacion|seguridad|acceso|verificacao|confirmacao|seguranca|acesso|otp|sms)|"
    r"codice (?:di )?(?:verifica|conferma|sicurezza|accesso|otp|sms)|code (?:otp|sms)|"
    r"(?:verificatie|bevestigings|beveiligings|inlog|toegangs|verifierings|engangs|sakerhets)(?:code|kode|kod)(?:en)?|"
    r"kod (?:weryfikacyjny|potwierdzajacy|dostepu|sms|jednorazowy)|haslo jednorazowe|overovaci kod|dogrulama kodu|"
    r"clave dinamica|code (?:i |we |you )?(?:got|received|sent|texted|recu(?: par sms)?)|codigo que (?:me|te|"
    r"le) [a-z]{4,10}|"
    r"(?:your|dein|ihr|votre|ton|tu|su|il tuo|seu|uw|je|twoj|din) (?:sms )?(?:code|codigo|codice|kod)\b|"
    r"kod podtverzdenia|kode verifikasi"
)
_VALUE = r"[0-9]{4,8}|[0-9]{3}[ -][0-9]{3}|[A-Z]-[0-9]{6}|[a-z0-9]{4,5}-[a-z0-9]{4,5}"
# "Enter the code 482913", "482913 is the code": of fewer digits are those of errors and doors.
_THE_CODE = r"(?i)\bthe code (?:is |was )?([0-9]{6})(?:[^0-9A-Za-z]|$)|\b([0-9]{6}) is (?:the|your|my) code\b"
_YEAR = len("2025")


def _find(shape: ByteText) -> Iterator[Span]:
    for start, end in search_by_label(_LABELS, _VALUE, BESIDE)(shape):
        if not any(map(str.isdigit, shape.text[start:end])):
            continue
        if end - start > _YEAR or shape.text[start : start + 2] not in ("19", "20"):
            yield Span(start, end)


def _find_the_code(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_THE_CODE).finditer(shape.data):
        start, end = match.span(match.lastindex)
        if not is_counted(shape, start, end):
            yield Span(start, end)


_NAME = "a one-time code"
DETECTORS: tuple[Detector, ...] = (
    Detector("one_time_code", _NAME, (rf"(?i:{label_pattern(_LABELS)})",), _find),
    Detector(
        "one_time_code",
        _NAME,
        (r"(?i)\bthe code (?:is |was )?[0-9]{6}|[0-9]{6} is (?:the|your|my) code",),
        _find_the_code,
    ),
)
