"""Settings of sinks. Only `ragtide.stream.settings.loader` reads them."""

import base64
import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator


class ClickHouseSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The ClickHouse server (or the embedded one) that holds every table."""

    url: str = Field(default="http://127.0.0.1:8123", description="HTTP(S) URL of the server.")
    user: str = Field(default="default", description="User name.")
    password: SecretStr = Field(default=SecretStr(""), description="Password. For the embedded server, its key.")
    database: str = Field(default="ragtide", description="Database name. `ragtide migrate` creates it.")
    timeout_s: float = Field(default=30.0, gt=0, description="Timeout of a request, in seconds.")

    @field_validator("url")
    @classmethod
    def _check_no_secret(cls, url: str) -> str:
        return _without_credentials(url, "clickhouse.user and clickhouse.password")


class RetentionSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How long rows are kept, in days. `live` counts from event time, other runs from ingest time."""

    traces_days: int = Field(default=90, ge=1, description="Days to keep traces and scores.")
    texts_days: int = Field(
        default=30,
        ge=1,
        description="Days to keep texts of traces, such as questions and answers, and explanations of scores.",
    )
    labels_days: int = Field(
        default=30, ge=1, description="Days to keep labels: reference answers, grades, verdicts of people."
    )
    embeddings_days: int = Field(
        default=30, ge=1, description="Days to keep vectors of questions and answers, and what was learned from them."
    )
    windows_minute_days: int = Field(default=30, ge=1, description="Days to keep windows shorter than an hour.")
    windows_hour_days: int = Field(
        default=365, ge=1, description="Days to keep windows of an hour or more, but less than a day."
    )
    windows_day_days: int = Field(default=1825, ge=1, description="Days to keep windows of a day.")
    dead_letters_days: int = Field(default=90, ge=1, description="Days to keep rows about dead letters.")
    outbox_days: int = Field(default=90, ge=8, description="Days to keep notifications, undelivered ones included.")

    def windows_days(self, size_s: int) -> int:
        """Retention of windows of that size, in days."""
        return int(getattr(self, self.windows_setting(size_s)))

    @staticmethod
    def windows_setting(size_s: int) -> str:
        """The name of that setting."""
        if size_s < 3600:
            return "windows_minute_days"
        return "windows_hour_days" if size_s < 86400 else "windows_day_days"


# What the tables hold of a trace's names. Rows, rules and series are found by those that are stored as sent.
MASKED_NAMES = (
    *("session_id", "user_id", "error.type", "chunk ids", "categories", "segments", "relationships", "test_case"),
    "authors of labels",
)
_OF_USERS = ("user_id", "authors of labels")
AS_SENT = (
    *("trace_id", "app", "environment", "model", "prompt_version", "task", "probe", "names of classes"),
    "time and numbers",
)


class PrivacySettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How texts, names and vectors of users are stored."""

    store_texts: Literal["full", "masked", "hashed", "off"] = Field(
        default="full",
        description="How to store texts of questions, answers, chunks, references, errors and attributes, and "
        "explanations of scores. full: as sent. masked: what pii_leakage and sensitive_data_leakage find is replaced "
        "by its kind. "
        "hashed: its kind and a keyed hash replace it. off: no text is stored. "
        f"Unless full, these names are masked too: {', '.join(MASKED_NAMES)}. Stored as sent: {', '.join(AS_SENT)}.",
    )
    store_embeddings: bool | None = Field(
        default=None,
        description="Store vectors of questions and answers, to detect input drift and answers that disagree. Texts "
        "can be guessed from vectors. If unset, vectors are stored only if store_texts is full.",
    )
    hash_users: bool = Field(default=False, description="Store keyed hashes instead of user ids and authors of labels.")
    hash_key: SecretStr = Field(
        default=SecretStr(""),
        description="Secret key of the hashes. Required with hash_users, and if store_texts is hashed.",
    )

    @property
    def in_words(self) -> tuple[str, ...]:
        """What the tables hold of traces, one sentence each. The dead-letter topic holds records as sent."""
        texts = {"full": "stored as sent", "off": "not stored"}.get(self.store_texts, self.store_texts)
        names = {"full": "stored as sent", "hashed": "hashed"}.get(self.store_texts, "masked")
        masked = tuple(name for name in MASKED_NAMES if not self.hash_users or name not in _OF_USERS)
        return (
            f"texts are {texts}: question, answer, contexts, expected, error message, attributes, comments of labels, "
            "explanations of scores",
            f"names are {names}: {', '.join(masked)}",
            *([f"hashed: {', '.join(_OF_USERS)}"] if self.hash_users else []),
            f"always stored as sent: {', '.join(AS_SENT)}",
            "the dead-letter topic holds records as they came",
        )

    @property
    def stores_embeddings(self) -> bool:
        """Whether vectors are stored. By default only with full texts, because a vector reveals its text."""
        return self.store_texts == "full" if self.store_embeddings is None else self.store_embeddings


# What a link to a trace may name.
TRACE_FIELDS = ("trace_id", "app", "environment", "run", "session_id", "time_ms")


class GrafanaSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The Grafana that dashboards and annotations are pushed to; nothing is sent without a url."""

    url: str = Field(
        default="", description="Base URL, e.g. https://grafana.example.org. If empty, nothing is sent to Grafana."
    )
    token: SecretStr = Field(default=SecretStr(""), description="Service account token.")
    org_id: int = Field(default=1, ge=1, description="Organisation id.")
    trace_url: str = Field(
        default="",
        description="URL of a trace, e.g. https://traces.example.org/{app}/{trace_id}. Example traces in tables link "
        "to it. If empty, they link to the dashboard of the trace.",
    )
    trace_links: dict[str, str] = Field(
        default={},
        description="Links of a trace to other tools, as name = URL, e.g. Langfuse = "
        "https://langfuse.example.org/project/p1/traces/{trace_id}. The URL is absolute, or a path in Grafana. "
        f"It may name {', '.join(f'{{{name}}}' for name in TRACE_FIELDS)}.",
    )
    prometheus_uid: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_-]{0,40}$",
        description="UID of the Prometheus data source that scrapes ragtide's /metrics. If set, dashboard pipeline "
        "shows memory, GPUs and more.",
    )
    data_source_user: str = Field(
        default="",
        description="ClickHouse user of the data source that `dashboards push --data-source` creates. Give it read "
        "access only. If empty, clickhouse.user and its password are used.",
    )
    data_source_password: SecretStr = Field(
        default=SecretStr(""),
        description="Password of data_source_user. For the embedded server, the key in `reader-key`.",
    )
    timeout_s: float = Field(default=10.0, gt=0, description="Timeout of a request, in seconds.")

    @field_validator("url")
    @classmethod
    def _check_no_secret(cls, url: str) -> str:
        return _without_credentials(url, "grafana.token")

    @field_validator("trace_url")
    @classmethod
    def _check_trace_url(cls, url: str) -> str:
        if url and not (url.startswith(("http://", "https://")) and "{trace_id}" in url):
            raise ValueError("give http:// or https:// and {trace_id} where the trace's id stands")
        return url

    @field_validator("trace_links")
    @classmethod
    def _check_trace_links(cls, links: dict[str, str]) -> dict[str, str]:
        for name, url in links.items():
            if not (url.startswith(("http://", "https://")) or re.match(r"/(?!/)", url)) or "{trace_id}" not in url:
                raise ValueError(f"{name}: give http://, https:// or a path, and {{trace_id}} where the id stands")
            if unknown := set(re.findall(r"\{([a-z_]+)\}", url)) - set(TRACE_FIELDS):
                valid = ", ".join(f"{{{field}}}" for field in TRACE_FIELDS)
                raise ValueError(f"{name}: no such field {{{min(unknown)}}}; valid: {valid}")
        return links


_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OWN_HEADERS = ("content-type", "content-length", "host", "user-agent", "transfer-encoding", "connection")


class WebhookEndpoint(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The receiver of a webhook. The URL is secret too: it often holds a token."""

    url: SecretStr = Field(description="http:// or https:// URL that messages are posted to. Never logged.")
    secret: SecretStr = Field(
        default=SecretStr(""),
        description="Key of the signature (HMAC-SHA256): whsec_ and base64, or any text of 16 characters or more. If "
        "empty, messages are not signed.",
    )
    previous_secret: SecretStr = Field(
        default=SecretStr(""), description="Key before a rotation. Messages are signed with both."
    )
    headers: dict[str, SecretStr] = Field(
        default={}, description="More headers, e.g. { Authorization = 'Bearer …' }. Never logged."
    )
    ca_file: str = Field(
        default="", description="File of CA certificates (PEM) for the receiver. If empty, the system's are used."
    )
    timeout_s: float = Field(default=10.0, gt=0, le=60, description="Maximum seconds of a request, answer included.")

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        return check_secret_url(url)

    @field_validator("secret", "previous_secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr) -> SecretStr:
        text = secret.get_secret_value()
        if text and len(signing_key(text)) < 16:
            raise ValueError("is too short: give at least 16 bytes, e.g. of `openssl rand -base64 32`")
        return secret

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        return check_headers(headers, "webhook-")


def check_secret_url(url: SecretStr) -> SecretStr:
    """Raise `ValueError`, which does not quote it, for what is no URL of a receiver."""
    try:
        parts = urlsplit(url.get_secret_value())
        whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # its message would quote the address
        whole = False
    if not whole or any(not "!" <= sign <= "~" for sign in url.get_secret_value()):
        raise ValueError("give http:// or https:// and a host")
    if "@" in parts.netloc:
        raise ValueError("has a user or password in it; use headers = { Authorization = ... } instead")
    return url


def check_headers(headers: dict[str, SecretStr], own: str = "content-") -> dict[str, SecretStr]:
    """Raise `ValueError` for headers that cannot be sent, or that ragtide sets itself: also those that begin so."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a header")
        if name.lower() in _OWN_HEADERS or name.lower().startswith(own):
            raise ValueError(f"{name} is set by ragtide")
        if any(not " " <= sign <= "~" for sign in value.get_secret_value()):
            raise ValueError(f"{name}: the value has characters that no header has")
    return headers


def signing_key(secret: str) -> bytes:
    """Return the key's bytes: the base64 after `whsec_`, else the text. Raises `ValueError` for no base64."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        raise ValueError("is no base64 after whsec_") from None


def _without_credentials(url: str, instead: str) -> str:
    """Errors, logs and `ragtide config` show the url."""
    try:
        netloc = urlsplit(url).netloc
    except ValueError:  # its message may quote a password
        raise ValueError("is no URL") from None
    if "@" in (netloc or url):
        raise ValueError(f"has a user or password in it; set {instead} instead")
    return url
