"""Targets of scores as OpenTelemetry events, by the settings."""

from contextlib import AbstractContextManager

from ragtide.drift.export import EventSender
from ragtide.drift.export_settings import ExportSettings
from ragtide.sinks.otlp_http import Accepted, OtlpHttpClient
from ragtide.stream.kafka.event_topic import EventTopicSender
from ragtide.stream.settings.loader import Settings

SETTING = "otel.export"


class HttpSender:
    """Implements `ragtide.drift.export.EventSender` for an OTLP/HTTP endpoint."""

    name = "http"

    def __init__(self, export: ExportSettings) -> None:
        self._client = OtlpHttpClient(
            export.url, export.headers, export.ca_file, export.timeout_s, export.signal, SETTING
        )

    def connected(self) -> AbstractContextManager[None]:
        """Keep a connection open for the batches of a run."""
        return self._client.connected()

    def send(self, body: bytes) -> Accepted:
        """Post a batch."""
        return self._client.send(body)


def score_targets(settings: Settings) -> dict[str, EventSender]:
    """Return each target by the name of its job."""
    export = settings.otel.export
    found: dict[str, EventSender] = {}
    if export.url.get_secret_value():
        found["export:http"] = HttpSender(export)
    if export.scores_topic:
        found["export:topic"] = EventTopicSender(settings.kafka, export.scores_topic)
    return found
