"""Targets of scores as OpenTelemetry events, by the settings."""

from contextlib import AbstractContextManager

from ragtide.drift.export import EventSender, wanted_metrics
from ragtide.drift.export_settings import ExportSettings
from ragtide.evaluators import registry
from ragtide.evaluators.errors import Refused, Unavailable
from ragtide.sinks import otlp_json
from ragtide.sinks.otlp_http import Accepted, OtlpHttpClient
from ragtide.stream.kafka.event_topic import EventTopicSender
from ragtide.stream.settings.loader import Settings

SETTING = "otel.export"


class HttpSender:
    """Implements `ragtide.drift.export.EventSender` for an OTLP/HTTP endpoint."""

    name = "http"

    def __init__(self, export: ExportSettings) -> None:
        self._signal = export.signal
        self._client = OtlpHttpClient(
            export.url, export.headers, export.ca_file, export.timeout_s, export.signal, SETTING
        )

    def connected(self) -> AbstractContextManager[None]:
        """Keep a connection open for the batches of a run."""
        return self._client.connected()

    def send(self, body: bytes) -> Accepted:
        """Post a batch."""
        return self._client.send(body)

    def check(self) -> str:
        """Post an empty batch. Raises as `send`, and `Unavailable` if the endpoint refuses an empty one."""
        try:
            self._client.send(otlp_json.empty_batch(self._signal))
        except Refused as error:
            raise Unavailable(f"answers, and refuses an empty batch, so that nothing is known: {error}") from None
        return f"{self._client.where} accepted an empty batch of {self._signal}"


def check_score_targets(settings: Settings) -> str:
    """Check the metrics to send and the endpoint; return a summary. Topics are checked with the others."""
    export = settings.otel.export
    wanted = wanted_metrics(registry.load(settings.evaluators), export.metrics)
    count = f"{sum(map(len, wanted.values()))} metrics are sent"
    return f"{HttpSender(export).check()}; {count}" if export.url.get_secret_value() else count


def score_targets(settings: Settings) -> dict[str, EventSender]:
    """Return each target by the name of its job."""
    export = settings.otel.export
    found: dict[str, EventSender] = {}
    if export.url.get_secret_value():
        found["export:http"] = HttpSender(export)
    if export.scores_topic:
        found["export:topic"] = EventTopicSender(settings.kafka, export.scores_topic)
    return found
