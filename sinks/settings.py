"""Settings of the places where results go. Read by `stream.settings` only."""

from typing import Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator


class ClickHouseSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The ClickHouse server (or the embedded one) that holds every table."""

    url: str = Field(default="http://127.0.0.1:8123", description="HTTP(S) interface of the server.")
    user: str = Field(default="default", description="User name.")
    password: SecretStr = Field(default=SecretStr(""), description="Password; for the embedded server its key.")
    database: str = Field(default="ragwatch", description="Database; `ragwatch migrate` creates it.")
    timeout_s: float = Field(default=30.0, gt=0, description="Longest a single request may take.")

    @field_validator("url")
    @classmethod
    def _is_no_secret(cls, url: str) -> str:
        return _without_credentials(url, "clickhouse.user and clickhouse.password")


class RetentionSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How long rows are kept, in days. `live` counts from event time, other runs from ingest time."""

    traces_days: int = Field(default=90, ge=1, description="Traces and scores.")
    texts_days: int = Field(default=30, ge=1, description="What users wrote.")
    labels_days: int = Field(default=30, ge=1, description="Late facts: reference answers, grades, people's verdicts.")
    embeddings_days: int = Field(
        default=30, ge=1, description="Vectors of questions and answers, and what was learned from them."
    )
    windows_minute_days: int = Field(default=30, ge=1, description="Windows of a minute (and of the base size).")
    windows_hour_days: int = Field(default=365, ge=1, description="Windows of an hour.")
    windows_day_days: int = Field(default=1825, ge=1, description="Windows of a day.")
    dead_letters_days: int = Field(default=90, ge=1, description="Rows about dead letters.")
    outbox_days: int = Field(default=90, ge=8, description="Messages to Grafana, also those that it never took.")

    def windows_days(self, size_s: int) -> int:
        """How many days windows of that size are kept."""
        return int(getattr(self, self.windows_setting(size_s)))

    @staticmethod
    def windows_setting(size_s: int) -> str:
        """The setting that says so."""
        if size_s < 3600:
            return "windows_minute_days"
        return "windows_hour_days" if size_s < 86400 else "windows_day_days"


class PrivacySettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """What is stored of what users wrote."""

    store_texts: Literal["full", "masked", "hashed", "off"] = Field(
        default="full",
        description="Texts of questions, answers, chunks, references, errors and attributes; masked: a kind in the "
        "place of what pii_leakage and sensitive_data_leakage find; hashed: with a keyed hash of it.",
    )
    store_embeddings: bool | None = Field(
        default=None,
        description="Vectors of questions and answers, to see drift in what is asked and answers that disagree. Texts "
        "can be guessed from them: unset, they are stored where store_texts is full.",
    )
    hash_users: bool = Field(default=False, description="Store a keyed hash instead of the user id.")
    hash_key: SecretStr = Field(
        default=SecretStr(""), description="Key of those hashes; required with hash_users and hashed."
    )

    @property
    def stores_embeddings(self) -> bool:
        """What is decided where nothing is set: no vector tells what the texts must not."""
        return self.store_texts == "full" if self.store_embeddings is None else self.store_embeddings


class GrafanaSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The Grafana that dashboards and annotations are pushed to; nothing is sent without a url."""

    url: str = Field(default="", description="Base URL, e.g. https://grafana.example.org; empty: no Grafana.")
    token: SecretStr = Field(default=SecretStr(""), description="Service account token.")
    org_id: int = Field(default=1, ge=1, description="Organisation.")
    folder_uid: str = Field(default="ragwatch", description="Folder of our dashboards.")
    trace_url: str = Field(
        default="",
        description="Where a trace can be looked at, e.g. https://traces.example.org/{app}/{trace_id}; examples of "
        "problems link there. Empty: to its texts in Grafana's explore.",
    )
    timeout_s: float = Field(default=10.0, gt=0, description="Longest a single request may take.")

    @field_validator("url")
    @classmethod
    def _is_no_secret(cls, url: str) -> str:
        return _without_credentials(url, "grafana.token")

    @field_validator("trace_url")
    @classmethod
    def _names_the_trace(cls, url: str) -> str:
        if url and not (url.startswith(("http://", "https://")) and "{trace_id}" in url):
            raise ValueError("give http:// or https:// and {trace_id} where the trace's id stands")
        return url


def _without_credentials(url: str, instead: str) -> str:
    """Errors, logs and `ragwatch config` show the url."""
    try:
        netloc = urlsplit(url).netloc
    except ValueError:  # its message may quote a password
        raise ValueError("is no URL") from None
    if "@" in (netloc or url):
        raise ValueError(f"has a user or password in it; set {instead} instead")
    return url
