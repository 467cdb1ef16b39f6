"""Tokens of more providers, all of one kind: one does the same about each of them."""

from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.secrets.provider_token import token

_TOKENS: tuple[tuple[str, str], ...] = (  # mark, pattern
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
    (
        r"A3-",
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}",
    ),  # 1Password
    (r"p8e-", r"p8e-[a-zA-Z0-9]{32}"),  # Adobe
    (r"cmVmd", r"cmVmd[A-Za-z0-9]{59}"),  # Artifactory
    (
        r"\.acc[_-]",
        r"(?:sc|ext|scauth|"
        r"authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
    ),
    (r"ABSK|bedrock-api-key-", r"ABSK[A-Za-z0-9+/]{100,269}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{20,}"),  # AWS Bedrock
    (r"4b1d", r"4b1d[A-Za-z0-9]{38}\b"),  # ClickHouse Cloud
    (r"CLOJARS_", r"CLOJARS_[A-Za-z0-9]{60}"),
    (r"v1\.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),  # Cloudflare
    (r"dnkey-", r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),  # Defined Networking
    (r"duffel_", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{43}"),
    (r"dt0c01\.", r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),  # Dynatrace
    (r"EZ[AT]K", r"EZ[AT]K[A-Za-z0-9]{54}"),  # EasyPost
    (r"FLW(?:SEC|PUB)K", r"FLW(?:SEC|PUB)K(?:_TEST)?-[A-Za-z0-9]{12,32}(?:-X)?"),  # Flutterwave
    (r"fm[12][ar]?_", r"fm[12][ar]?_[A-Za-z0-9+/]{80,}={0,3}"),  # Fly.io
    (r"fio-u-", r"fio-u-[A-Za-z0-9_=-]{64}"),  # Frame.io
    (r"eyJrIjoi", r"eyJrIjoi[A-Za-z0-9]{60,400}={0,3}"),  # Grafana, as they were
    (r"[ps]at\.", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),  # Harness
    (r"ico-", r"ico-[a-zA-Z0-9]{32}\b"),  # Infracost
    (r"s-s4t2", r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),  # 42
    (r"_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),  # MaxMind
    (
        r"webhook\.office\.com",
        r"(?:https?://)?[a-z0-9-]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{60,}",
    ),  # Microsoft Teams
    (r"NR(?:II|JS|AL)-", r"NR(?:II|JS|AL)-[A-Za-z0-9-]{19,32}"),  # New Relic
    (r"API-[A-Z0-9]{8}", r"API-[A-Z0-9]{26,32}\b"),  # Octopus Deploy
    (r"sha256~", r"sha256~[A-Za-z0-9_-]{43}"),  # OpenShift
    (r"pnu_", r"pnu_[A-Za-z0-9]{36}"),  # Prefect
    (r"rdme_", r"rdme_[a-z0-9]{70}"),  # ReadMe
    (r"tk-us-", r"tk-us-[A-Za-z0-9_-]{48}"),  # Scalingo
    (r"sm_[aps]at_", r"sm_[aps]at_[A-Za-z0-9]{16}\b"),  # SettleMint
    (r"shippo_", r"shippo_(?:live|test)_[a-fA-F0-9]{40}"),
    (r"sgp_", r"sgp_(?:[a-fA-F0-9]{16}_|local_)?[a-fA-F0-9]{40}"),  # Sourcegraph
    (r"sq[apu]_", r"sq[apu]_[a-f0-9]{40}"),  # SonarQube
    (r"EAAA", r"EAAA[A-Za-z0-9_-]{22,60}\b"),  # Square
    (r"\bs\.[A-Za-z0-9]", r"s\.[A-Za-z0-9]{24}\b"),  # Vault, as they were
    (r"AQVN", r"AQVN[A-Za-z0-9_-]{35,38}"),  # Yandex
    (r"access-(?:sandbox|dev|prod)", r"access-(?:sandbox|development|production)-[0-9a-f-]{36}"),  # Plaid
    (r"_gitlab_session=", r"_gitlab_session=[0-9a-z]{32}"),
    (r"[ps]k\.eyJ", r"[ps]k\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}"),  # Mapbox
    (r"bkua_", r"bkua_[a-f0-9]{40}"),  # Buildkite
    (r"rnd_", r"rnd_[A-Za-z0-9]{32,}"),  # Render
    (r"vcp_", r"vcp_[A-Za-z0-9]{40,}"),  # Vercel
    (r"tskey-", r"tskey-[a-z]{2,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),  # Tailscale
    (r"oy2", r"oy2[a-z0-9]{43}\b"),  # NuGet
    (r"cio", r"cio[A-Za-z0-9]{32}\b"),  # of Cargo
    (r"fo1_", r"fo1_[A-Za-z0-9_-]{40,}"),  # Fly.io
    (r"IQoJb3JpZ2lu", r"IQoJb3JpZ2lu[A-Za-z0-9+/]{60,}={0,2}"),  # AWS session
    (r"django-insecure-", r"django-insecure-[^\s\"']{30,64}"),
    (r"access_token\$", r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),  # Braintree
    (r"[01]/[0-9]{13}", r"[012]/[0-9]{13,16}(?:/[0-9]{13,16})?:[0-9a-f]{32}"),  # Asana
    (r"hooks\.zapier\.com", r"(?:https?://)?hooks\.zapier\.com/hooks/catch/[0-9]{4,10}/[A-Za-z0-9]{5,12}"),
    (r"outlook\.office", r"(?:https?://)?outlook\.office(?:365)?\.com/webhook/[A-Za-z0-9@/-]{60,}"),
    (r"[xyztuv]prv", r"[xyztuv]prv[1-9A-HJ-NP-Za-km-z]{100,112}"),  # of a wallet (BIP 32)
    (r"xoxe\.", r"xoxe\.xox[bp]-[0-9]-[A-Za-z0-9-]{40,}"),  # Slack, refreshing
)

DETECTORS: tuple[Detector, ...] = tuple(
    token("api_token", "an API token", mark, pattern, digit=True) for mark, pattern in _TOKENS
)
