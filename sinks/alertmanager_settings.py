"""Settings of Alertmanager. Only `ragtide.stream.settings.loader` reads them."""

import re
from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

RUNBOOK_FIELD = "{kind}"
RESERVED_LABELS = (  # those that every alert has, or may have
    *("alertname", "app", "environment", "severity", "type", "metric", "evaluator", "segment", "model", "owner"),
    "problem_id",
)
_Label = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]


class AlertmanagerSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The Alertmanagers that open problems are posted to as alerts; nothing is posted without urls."""

    urls: tuple[str, ...] = Field(
        default=(),
        description="Base URL of each Alertmanager, e.g. https://alertmanager.example.org:9093. Name every member of a "
        "cluster: alerts are posted to all. If empty, no alerts are posted.",
    )
    user: str = Field(default="", description="User name for basic authentication.")
    password: SecretStr = Field(default=SecretStr(""), description="Password of that user.")
    bearer_token: SecretStr = Field(default=SecretStr(""), description="Bearer token, instead of user and password.")
    ca_file: Path | None = Field(
        default=None, description="PEM file of the certificate authorities to trust. If unset, those of the system."
    )
    cert_file: Path | None = Field(default=None, description="PEM file of the client certificate.")
    key_file: Path | None = Field(
        default=None, description="PEM file of its private key. If unset, cert_file holds the key too."
    )
    timeout_s: float = Field(default=10.0, gt=0, le=300, description="Timeout of a request, in seconds.")
    every_s: float = Field(
        default=3.0, gt=0, le=60, description="Seconds between looks for problems that opened, changed or resolved."
    )
    repost_s: float = Field(
        default=60.0,
        ge=1,
        le=3600,
        description="Seconds after which an open problem is posted again. Alertmanager resolves an alert by itself if "
        "it hears nothing for three times as long.",
    )
    labels: dict[_Label, str] = Field(
        default={},
        description="Labels of every alert, e.g. cluster = 'eu'. Labels of a route replace those of the same name.",
    )
    runbook_url: str | None = Field(
        default=None,
        description="Address of the runbooks, with {kind} for the kind of problem, e.g. "
        "https://wiki.example.org/ragtide/{kind}. By default, a panel of the dashboard Runbooks; without grafana.url, "
        "or if that dashboard is left out, a path in ragtide's repository. If empty, alerts have no runbook_url.",
    )

    @field_validator("urls")
    @classmethod
    def _check_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for number, url in enumerate(urls, 1):
            if fault := _fault(url):
                raise ValueError(f"number {number} {fault}")
        bases = [url.rstrip("/") for url in urls]
        if twice := sorted({url for url in bases if bases.count(url) > 1}):
            raise ValueError(f"named twice: {', '.join(twice)}")
        return tuple(bases)

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        if reserved := [name for name in labels if name in RESERVED_LABELS]:
            raise ValueError(f"{', '.join(reserved)}: alerts have labels of this name already; choose another")
        return labels

    @field_validator("runbook_url")
    @classmethod
    def _check_runbook_url(cls, url: str | None) -> str | None:
        if unknown := set(re.findall(r"\{[^}]*\}", url or "")) - {RUNBOOK_FIELD}:
            raise ValueError(f"no such field {min(unknown)}; valid: {RUNBOOK_FIELD}")
        return url

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        if self.user and self.bearer_token.get_secret_value():
            raise ValueError("alertmanager: set user and password, or bearer_token, not both")
        if self.password.get_secret_value() and not self.user:
            raise ValueError("alertmanager.password needs alertmanager.user")
        if self.key_file and not self.cert_file:
            raise ValueError("alertmanager.key_file needs alertmanager.cert_file")
        return self


def _fault(url: str) -> str:
    """What is wrong with a base URL; empty: nothing. It never quotes the URL: a password may be in it."""
    try:
        found = urlsplit(url)
        valid = found.scheme in ("http", "https") and found.hostname and (found.port is None or found.port)
    except ValueError:
        return "is no URL"
    if "@" in found.netloc:
        return "has a user or password in it; set alertmanager.user and alertmanager.password instead"
    if not valid or found.query or found.fragment:
        return "is no base URL; want https://alertmanager.example.org:9093 or the like, and nothing more"
    if found.path.rstrip("/").endswith(("/api/v1", "/api/v2", "/alerts")):
        return "names a path of the API; leave out /api and what follows"
    return ""
