"""Keys and tokens that carry their provider's mark. Formats as the providers and public secret scanners give them."""

from collections.abc import Iterator
from functools import partial

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.secrets.placeholder import is_name

_FEW = 6  # different characters behind the mark; fewer are a filler such as xxxxxxxx
# A token begins where a word does, or behind a name's "_", a line end as JSON writes it, a percent-encoded sign.
_START = r"(?:\b|_|\\[nrt]|%[0-9A-Fa-f]{2})"
_URL_SAFE = r"[A-Za-z0-9_-]"


def _find(shape: ByteText, pattern: str, digit: bool) -> Iterator[Span]:
    for match in compile_pattern(rf"{_START}({pattern})").finditer(shape.data):
        value = match[match.lastindex].decode("latin-1")
        if len(set(value[4:])) < _FEW or is_name(value):
            continue
        if not digit or any(map(str.isdigit, value)):
            yield Span(*match.span(match.lastindex))


def token(kind: str, name: str, gate: str, pattern: str, *, digit: bool = False) -> Detector:
    """Finds `pattern` (or its group), all of whose texts hold `gate`; `digit`: words would fit, had they a digit."""
    return Detector(kind, name, (gate,), partial(_find, pattern=pattern, digit=digit))


DETECTORS: tuple[Detector, ...] = (
    token(
        "aws_key",
        "an AWS access key",
        r"A[KSBC][IC]A[A-Z0-9]|A3T",
        r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    ),
    token("google_key", "a Google API key", r"AIza", rf"AIza{_URL_SAFE}{{35}}"),
    token(
        "google_key",
        "a Google service account's key",
        r"private_?[kK]ey_?[iI]d",
        r"private_?[kK]ey_?[iI]d[\"'\\]{0,2}\s?[:=]\s?[\"'\\]{0,2}([0-9a-f]{40})",
    ),
    token(
        "google_key",
        "a Google OAuth token",
        r"ya29\.|GOCSPX-|1//0",
        rf"ya29\.{_URL_SAFE}{{20,}}|GOCSPX-{_URL_SAFE}{{28}}|1//0{_URL_SAFE}{{30,}}",
    ),
    token(
        "azure_key",
        "an Azure key",
        r"(?i)(?:AccountKey|SharedAccessKey|SharedSecretKey)=",
        r"(?i)(?:AccountKey|SharedAccessKey|SharedSecretKey)=[A-Za-z0-9+/]{40,88}={0,2}",
    ),
    token(  # so long is a SHA-512 in base64, too: the name must be near
        "azure_key",
        "an Azure key",
        r"[A-Za-z0-9+/]==",
        r"(?i:azure|account.?key|storage|cosmos)[^\n]{0,40}?\b([A-Za-z0-9+/]{86}==)",
    ),
    token("azure_key", "an Azure key", r"[?&]sig=", r"sig=[A-Za-z0-9%+/]{40,}={0,2}"),
    token("azure_key", "an Azure key", r"[0-9]Q~", r"[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34}"),
    token(
        "github_token",
        "a GitHub token",
        r"gh[pousr]_|github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}",
    ),
    token(
        "gitlab_token",
        "a GitLab token",
        r"gl[a-z]{2,5}-|GR1348941",
        rf"gl(?:pat|dt|rt|rtr|ptt|cbt|ft|oas|soat|agent|imt|ffct|"
        rf"wt)-{_URL_SAFE}{{20,}}(?:\.[0-9a-z]{{2}}\.?[0-9a-z]{{7,9}})?|GR1348941{_URL_SAFE}{{20}}",
    ),
    token(
        "slack_token",
        "a Slack token",
        r"xox[a-z]|xapp-",
        r"xox[a-z](?:\.xox[a-z])?-[0-9A-Za-z-]{10,}|xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[0-9a-fA-F]{20,}",
    ),
    token(
        "slack_webhook",
        "a Slack webhook",
        r"hooks\.slack\.com",
        r"(?:https?://)?hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{16,}",
    ),
    token(
        "stripe_key",
        "a Stripe key",
        r"[rs]k_(?:live|test|prod)_|whsec_",
        r"[rs]k_(?:live|test|prod)_[0-9A-Za-z]{10,}|whsec_[A-Za-z0-9+/=]{24,}",
    ),
    token("anthropic_key", "an Anthropic key", r"sk-ant-", rf"sk-ant-{_URL_SAFE}{{20,}}", digit=True),
    token(
        "openai_key",
        "an OpenAI key",
        r"sk-[A-Za-z0-9_-]{8}",
        rf"sk-(?:proj-|svcacct-|admin-|None-|or-v1-|lf-)?{_URL_SAFE}{{20,}}|sess-[A-Za-z0-9]{{40}}",
        digit=True,
    ),
    token(
        "huggingface_token", "a Hugging Face token", r"hf_|api_org_", r"hf_[A-Za-z0-9]{30,40}\b|api_org_[A-Za-z0-9]{34}"
    ),
    token("npm_token", "an npm token", r"npm_", r"npm_[A-Za-z0-9]{36}"),
    token("pypi_token", "a PyPI token", r"pypi-", rf"pypi-{_URL_SAFE}{{40,}}", digit=True),
    token("twilio_key", "a Twilio key", r"(?:SK|AC)[0-9a-fA-F]{8}", r"(?:SK|AC)[0-9a-fA-F]{32}\b"),
    token("sendgrid_key", "a SendGrid key", r"SG\.", rf"SG\.{_URL_SAFE}{{16,32}}\.{_URL_SAFE}{{16,64}}"),
    token(
        "telegram_token",
        "a Telegram bot token",
        r"[0-9]{8}:[A-Za-z0-9]",
        rf"(?:bot)?[0-9]{{8,10}}:[A-Za-z]{_URL_SAFE}{{32,34}}",
    ),
    token(
        "discord_token",
        "a Discord token",
        r"[MNO][A-Za-z0-9_-]{22}",
        rf"[MNO]{_URL_SAFE}{{22,27}}\.{_URL_SAFE}{{6,7}}\.{_URL_SAFE}{{27,40}}",
    ),
    token(
        "discord_token",
        "a Discord webhook",
        r"discord(?:app)?\.com/api/webhooks/",
        rf"(?:https?://)?discord(?:app)?\.com/api/webhooks/[0-9]{{15,20}}/{_URL_SAFE}{{40,}}",
    ),
    token(
        "jwt",
        "a JSON web token",
        r"eyJ[A-Za-z0-9_-]{8}",
        rf"eyJ{_URL_SAFE}{{8,}}\.eyJ{_URL_SAFE}{{8,}}\.{_URL_SAFE}*|"
        rf"eyJ{_URL_SAFE}{{8,}}\.{_URL_SAFE}*\.{_URL_SAFE}{{10,}}\.{_URL_SAFE}{{10,}}\.{_URL_SAFE}{{10,}}",
    ),
)
