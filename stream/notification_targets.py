"""Targets of notifications, by the settings."""

from ragtide.drift.notify import (
    AnnotationChannel,
    AnnotationSender,
    Target,
    WebhookChannel,
    WebhookSender,
)
from ragtide.sinks.grafana import GrafanaGateway
from ragtide.stream.settings.loader import Settings

GRAFANA_JOB = "announce"


def notification_targets(settings: Settings) -> dict[str, Target]:
    """Return each target by the name of its job. Raises `ConfigError` for settings that no target can use."""
    found: dict[str, Target] = {}
    if settings.grafana.url:
        found[GRAFANA_JOB] = Target(AnnotationSender(GrafanaGateway(settings.grafana)), AnnotationChannel())
    for webhook in settings.webhooks:
        channel = WebhookChannel(webhook, settings.routes)
        found[channel.name] = Target(WebhookSender(webhook), channel, channel)
    return found
