"""Targets of notifications and alerts, by the settings."""

from functools import partial

from ragtide.drift.notify import (
    AlertContext,
    AnnotationChannel,
    AnnotationSender,
    InsightTopic,
    ProblemTopic,
    Target,
    WebhookChannel,
    WebhookSender,
)
from ragtide.sinks.grafana import GrafanaGateway
from ragtide.stream.kafka.state_topics import StateTopicSender
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
    kafka = settings.kafka
    if kafka.problems_topic:
        problems = ProblemTopic(kafka.problems_topic, settings.routes)
        found[problems.name] = Target(StateTopicSender(kafka, kafka.problems_topic), problems)
    if kafka.insights_topic:
        insights = InsightTopic(kafka.insights_topic, settings.routes)
        found[insights.name] = Target(StateTopicSender(kafka, kafka.insights_topic), insights=insights)
    return found


def alert_context(settings: Settings) -> AlertContext:
    """Gather what alerts need of the settings."""
    from ragtide.dashboards.problem_links import problem_link
    from ragtide.dashboards.runbook_links import fill, runbook_template
    from ragtide.dashboards.trace_links import trace_link

    return AlertContext(
        settings.routes,
        settings.alertmanager.labels,
        partial(fill, runbook_template(settings.alertmanager.runbook_url, settings.grafana, settings.dashboards)),
        partial(trace_link, settings=settings.grafana, uid_prefix=settings.dashboards.uid_prefix),
        partial(problem_link, settings=settings.grafana, uid_prefix=settings.dashboards.uid_prefix),
    )
