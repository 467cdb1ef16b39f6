"""Keys and tokens that carry their provider's mark. Formats as the providers and public secret scanners give them."""

from collections.abc import Iterator
from functools import partial

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.patterns import compiled

_FEW = 6  # different characters behind the mark; fewer are a filler such as xxxxxxxx
_URL_SAFE = r"[A-Za-z0-9_-]"


def _find(shape: Formatted, pattern: str, digit: bool) -> Iterator[Span]:
    for match in compiled(rf"\b(?:{pattern})").finditer(shape.data):
        text = match[0]
        if len(set(text[4:])) >= _FEW and (not digit or any(48 <= byte <= 57 for byte in text)):
            yield Span(*match.span())


def _token(kind: str, name: str, gate: str, pattern: str, *, digit: bool = False) -> Detector:
    """`gate` is the mark; `digit`: words with hyphens would fit, had they a digit."""
    return Detector(kind, name, (gate,), partial(_find, pattern=pattern, digit=digit))


_OTHERS: tuple[tuple[str, str], ...] = (  # mark, pattern; one kind, since one does the same about all of them
    (r"shp(?:at|ca|pa|ss)_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),  # Shopify
    (r"sq0[a-z]{3}-", r"sq0[a-z]{3}-[0-9A-Za-z_-]{22,43}"),  # Square
    (r"dapi[0-9a-f]", r"dapi[0-9a-f]{32}(?:-[0-9])?"),  # Databricks
    (r"do[opr]_v1_", r"do[opr]_v1_[0-9a-f]{64}"),  # DigitalOcean
    (r"key-[0-9a-f]{8}", r"key-[0-9a-f]{32}"),  # Mailgun
    (r"-us[0-9]", r"[0-9a-f]{32}-us[0-9]{1,2}\b"),  # Mailchimp
    (r"xkeysib-", r"xkeysib-[0-9a-f]{64}-[0-9A-Za-z]{16}"),  # Brevo
    (r"NRAK-", r"NRAK-[A-Z0-9]{27}"),  # New Relic
    (r"gl(?:sa|c)_", r"glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,}={0,2}"),  # Grafana
    (r"sntry[su]_", r"sntry[su]_[A-Za-z0-9+/=_]{40,}"),  # Sentry
    (r"PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),  # Postman
    (r"dp\.pt\.", r"dp\.pt\.[A-Za-z0-9]{40,44}"),  # Doppler
    (r"hv[sbr]\.", r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),  # Vault
    (r"\.atlasv1\.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),  # Terraform
    (r"pul-[0-9a-f]", r"pul-[0-9a-f]{40}"),  # Pulumi
    (r"rubygems_", r"rubygems_[0-9a-f]{48}"),
    (r"dckr_[po]at_", r"dckr_[po]at_[A-Za-z0-9_-]{24,}"),  # Docker
    (r"gsk_", r"gsk_[A-Za-z0-9]{40,}"),  # Groq
    (r"r8_", r"r8_[A-Za-z0-9]{37}"),  # Replicate
    (r"pplx-", r"pplx-[A-Za-z0-9]{40,}"),  # Perplexity
    (r"xai-", r"xai-[A-Za-z0-9]{60,}"),
    (r"lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),  # LangSmith
    (r"pcsk_", r"pcsk_[A-Za-z0-9_]{40,}"),  # Pinecone
    (r"sbp_", r"sbp_[0-9a-f]{40}"),  # Supabase
    (r"pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}"),  # PlanetScale
    (r"FlyV1 ", r"FlyV1 fm[12][a-z]?_[A-Za-z0-9+/=]{40,}"),
    (r"ATATT3", r"ATATT3[A-Za-z0-9_=-]{60,}"),  # Atlassian
    (r"ATBB", r"ATBB[A-Za-z0-9]{32}"),  # Bitbucket
    (r"EAA[A-Za-z0-9]{8}", r"EAA[A-Za-z0-9]{60,}"),  # Facebook
    (r"A{20}", r"A{20,24}[A-Za-z0-9]{3,90}%[A-Za-z0-9%]{20,}"),  # Twitter
    (r"LTAI", r"LTAI[A-Za-z0-9]{16,20}"),  # Alibaba
    (r"AKID", r"AKID[A-Za-z0-9]{32}"),  # Tencent
    (r"ntn_|secret_", r"(?:secret_|ntn_)[A-Za-z0-9]{43,50}"),  # Notion
    (r"pat[A-Za-z0-9]{14}\.", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),  # Airtable
    (r"lin_api_", r"lin_api_[A-Za-z0-9]{40}"),  # Linear
    (r"figd_", r"figd_[A-Za-z0-9_-]{40,}"),  # Figma
    (r"AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    (r"ops_eyJ", r"ops_eyJ[A-Za-z0-9_-]{100,}={0,2}"),  # 1Password
    (r"AKCp", r"AKCp[A-Za-z0-9]{69}"),  # Artifactory
    (r"AAAA[A-Za-z0-9_-]{7}:", r"AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{140}"),  # Firebase messaging
    (r"HRKU-", r"HRKU-[A-Za-z0-9_-]{36,}"),  # Heroku
    (r"sl\.[A-Za-z0-9]", r"sl\.[A-Za-z0-9_-]{100,}"),  # Dropbox
    (r"CFPAT-", r"CFPAT-[A-Za-z0-9_-]{43}"),  # Contentful
    (r"phc_|phx_", r"ph[cx]_[A-Za-z0-9]{40,}"),  # PostHog
    (r"nvapi-", r"nvapi-[A-Za-z0-9_-]{60,}"),  # NVIDIA
    (r"tfp_", r"tfp_[A-Za-z0-9_-]{40,}"),  # Typeform
    (r"PRIVATE-TOKEN", r"PRIVATE-TOKEN: ?[A-Za-z0-9_-]{20,}"),
    (r"fc-[0-9a-f]{8}", r"fc-[0-9a-f]{32}"),  # Firecrawl
    (r"tvly-", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}"),  # Tavily
)

DETECTORS: tuple[Detector, ...] = (
    _token(
        "aws_key",
        "an AWS access key",
        r"A[KSBC][IC]A[A-Z0-9]|A3T",
        r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    ),
    _token("google_key", "a Google API key", r"AIza", rf"AIza{_URL_SAFE}{{35}}"),
    _token(
        "google_key",
        "a Google OAuth token",
        r"ya29\.|GOCSPX-|1//0",
        rf"ya29\.{_URL_SAFE}{{20,}}|GOCSPX-{_URL_SAFE}{{28}}|1//0{_URL_SAFE}{{30,}}",
    ),
    _token(
        "azure_key",
        "an Azure key",
        r"(?i)(?:AccountKey|SharedAccessKey|SharedSecretKey)=",
        r"(?i)(?:AccountKey|SharedAccessKey|SharedSecretKey)=[A-Za-z0-9+/]{40,88}={0,2}",
    ),
    _token("azure_key", "an Azure key", r"[?&]sig=", r"sig=[A-Za-z0-9%+/]{40,}={0,2}"),
    _token("azure_key", "an Azure key", r"[0-9]Q~", r"[A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34}"),
    _token(
        "github_token",
        "a GitHub token",
        r"gh[pousr]_|github_pat_",
        r"gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255}",
    ),
    _token(
        "gitlab_token",
        "a GitLab token",
        r"gl[a-z]{2,5}-|GR1348941",
        rf"gl(?:pat|dt|rt|rtr|ptt|cbt|ft|oas|soat|agent|imt|ffct|wt)-{_URL_SAFE}{{20,}}(?:\.[0-9a-z]{{2}}\.?[0-9a-z]{{7,9}})?|GR1348941{_URL_SAFE}{{20}}",
    ),
    _token(
        "slack_token",
        "a Slack token",
        r"xox[a-z]|xapp-",
        r"xox[a-z](?:\.xox[a-z])?-[0-9A-Za-z-]{10,}|xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[0-9a-fA-F]{20,}",
    ),
    _token(
        "slack_webhook",
        "a Slack webhook",
        r"hooks\.slack\.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{16,}",
    ),
    _token(
        "stripe_key",
        "a Stripe key",
        r"[rs]k_(?:live|test)_|whsec_",
        r"[rs]k_(?:live|test)_[0-9A-Za-z]{10,}|whsec_[A-Za-z0-9+/=]{24,}",
    ),
    _token("anthropic_key", "an Anthropic key", r"sk-ant-", rf"sk-ant-{_URL_SAFE}{{20,}}", digit=True),
    _token(
        "openai_key",
        "an OpenAI key",
        r"sk-[A-Za-z0-9_-]{8}",
        rf"sk-(?:proj-|svcacct-|admin-|None-|or-v1-|lf-)?{_URL_SAFE}{{20,}}|sess-[A-Za-z0-9]{{40}}",
        digit=True,
    ),
    _token(
        "huggingface_token", "a Hugging Face token", r"hf_|api_org_", r"hf_[A-Za-z0-9]{30,40}\b|api_org_[A-Za-z0-9]{34}"
    ),
    _token("npm_token", "an npm token", r"npm_", r"npm_[A-Za-z0-9]{36}"),
    _token("pypi_token", "a PyPI token", r"pypi-", rf"pypi-{_URL_SAFE}{{40,}}", digit=True),
    _token("twilio_key", "a Twilio key", r"(?:SK|AC)[0-9a-f]{8}", r"(?:SK|AC)[0-9a-f]{32}\b"),
    _token("sendgrid_key", "a SendGrid key", r"SG\.", rf"SG\.{_URL_SAFE}{{16,32}}\.{_URL_SAFE}{{16,64}}"),
    _token(
        "telegram_token", "a Telegram bot token", r"[0-9]{8}:[A-Za-z0-9]", rf"[0-9]{{8,10}}:[A-Za-z]{_URL_SAFE}{{34}}"
    ),
    _token(
        "discord_token",
        "a Discord token",
        r"[MNO][A-Za-z0-9_-]{22}",
        rf"[MNO]{_URL_SAFE}{{22,27}}\.{_URL_SAFE}{{6,7}}\.{_URL_SAFE}{{27,40}}",
    ),
    _token(
        "discord_token",
        "a Discord webhook",
        r"discord(?:app)?\.com/api/webhooks/",
        rf"discord(?:app)?\.com/api/webhooks/[0-9]{{15,20}}/{_URL_SAFE}{{40,}}",
    ),
    _token(
        "jwt",
        "a JSON web token",
        r"eyJ[A-Za-z0-9_-]{8}",
        rf"eyJ{_URL_SAFE}{{8,}}\.eyJ{_URL_SAFE}{{8,}}\.{_URL_SAFE}*|eyJ{_URL_SAFE}{{8,}}\.{_URL_SAFE}*\.{_URL_SAFE}{{10,}}\.{_URL_SAFE}{{10,}}\.{_URL_SAFE}{{10,}}",
    ),
    *(_token("api_token", "an API token", *each) for each in _OTHERS),
)
