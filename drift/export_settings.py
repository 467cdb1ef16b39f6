"""Settings of scores that go to other tools. Read by `ragtide.stream.settings.loader` only."""

from typing import Self
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from ragtide.sinks.otlp_http import PATHS, Signal
from ragtide.sinks.settings import check_headers, check_secret_url


class ExportSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Where scores go as OpenTelemetry events, and which ones."""

    url: SecretStr = Field(
        default=SecretStr(""),
        description="Whole URL of an OTLP/HTTP endpoint that scores are posted to as JSON, e.g. "
        "http://collector:4318/v1/logs. If empty, none are. Never logged.",
    )
    headers: dict[str, SecretStr] = Field(
        default={}, description="More headers, e.g. { Authorization = 'Basic …' }. Never logged."
    )
    ca_file: str = Field(
        default="", description="File of CA certificates (PEM) for the endpoint. If empty, the system's are used."
    )
    timeout_s: float = Field(default=10.0, gt=0, le=60, description="Maximum seconds of a request, answer included.")
    scores_topic: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9._-]{0,249}$",
        description="Topic that scores are written to as batches of OTLP in JSON. If empty, none are.",
    )
    signal: Signal = Field(
        default="logs",
        description="Form of a score: logs, a log record as the convention has it (v1/logs); or spans, a span below "
        "the one that was evaluated (v1/traces), for tools that read no log records.",
    )
    metrics: tuple[str, ...] = Field(
        default=(),
        description="Patterns of metrics to send, e.g. groundedness.*. If empty, each evaluator's primary metrics.",
    )
    explanations: bool = Field(
        default=False,
        description="Also send the places that a score is about: field, kind, position and score, never a text. None "
        "are sent of evaluators of privacy.",
    )
    batch_events: int = Field(default=500, ge=1, le=10_000, description="Most events of a request or message.")
    max_events_s: float = Field(
        default=1000.0, gt=0, description="Most events per second, on average over a run of the job."
    )
    max_age_s: float = Field(
        default=86400.0,
        ge=300,
        description="Scores that were stored longer ago are left out and counted, after a long outage of the endpoint.",
    )

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        return check_secret_url(url) if url.get_secret_value() else url

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        return check_headers(headers)

    @model_validator(mode="after")
    def _check_headers_have_url(self) -> Self:
        if self.headers and not self.url.get_secret_value():
            raise ValueError("otel.export.headers need otel.export.url")
        return self

    @model_validator(mode="after")
    def _check_path_fits_signal(self) -> Self:
        other: Signal = "spans" if self.signal == "logs" else "logs"
        if urlsplit(self.url.get_secret_value()).path.rstrip("/").endswith(PATHS[other]):
            raise ValueError(
                f"otel.export.url ends in {PATHS[other]}, and otel.export.signal is {self.signal}: let the URL end in "
                f"{PATHS[self.signal]}, or set signal = {other}"
            )
        return self
