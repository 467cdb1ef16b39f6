"""One-time codes, as messages bring them for a login or a payment, beside their name."""

from collections.abc import Iterator

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.labels import BESIDE, called, labelled

_LABELS = (
    r"\botp\b|\btotp\b|one time (?:pass ?code|pass ?word|code|pin)|(?:verification|verify|confirmation|authentication|"
    r"authenticator|authorization|auth|security|log ?in|sign ?in|access|recovery|backup|activation|sms|mfa|2fa|"
    r"(?:two|multi) factor(?: authentication)?|whatsapp) code|\b2fa\b|\bmfa\b|\bmtan\b|\btan\b|"
    r"(?:bestatigungs|freischalt|aktivierungs|verifizierungs|sicherheits|anmelde|freigabe|zugangs|einmal)"
    r"(?:code|passwort|kennwort)|"
    r"code (?:de |d'|a )(?:verification|confirmation|securite|validation|connexion|acces|usage unique)|"
    r"codigo (?:de )?(?:verificacion|confirmacion|seguridad|acceso|verificacao|confirmacao|seguranca|acesso|otp|sms)|"
    r"codice (?:di )?(?:verifica|conferma|sicurezza|accesso|otp|sms)|code (?:otp|sms)|"
    r"(?:verificatie|bevestigings|beveiligings|inlog|toegangs|verifierings|engangs|sakerhets)(?:code|kode|kod)(?:en)?|"
    r"kod (?:weryfikacyjny|potwierdzajacy|dostepu|sms|jednorazowy)|haslo jednorazowe|overovaci kod|dogrulama kodu|"
    r"clave dinamica|code (?:i |we |you )?(?:got|received|sent|texted|recu)|codigo que (?:me|te|le) [a-z]{4,10}|"
    r"(?:your|dein|ihr|votre|ton|tu|su|il tuo|seu|uw|je|twoj|din|the) (?:sms )?(?:code|codigo|codice|kod)\b|"
    r"kod podtverzdenia|kode verifikasi"
)
_VALUE = r"[0-9]{4,8}|[0-9]{3}[ -][0-9]{3}|[A-Z]-[0-9]{6}"
_YEAR = len("2025")


def _find(shape: Formatted) -> Iterator[Span]:
    for start, end in labelled(_LABELS, _VALUE, BESIDE)(shape):
        if end - start > _YEAR or shape.text[start : start + 2] not in ("19", "20"):
            yield Span(start, end)


DETECTORS: tuple[Detector, ...] = (Detector("one_time_code", "a one-time code", (rf"(?i:{called(_LABELS)})",), _find),)
