"""Deliver notifications: annotations to Grafana, CloudEvents to webhooks, states to topics, alerts to Alertmanager.

Messages go through an outbox. A `Channel` decides which changes a target gets and writes the messages; a `Sender`
delivers them. `DeliveryJob` does the rest for one target: order, retries, and what to do after a crash. Alerts are no
messages: `AlertmanagerJob` posts every open problem again and again.
"""

from ragtide.drift.notify.alert import ALERT_PREFIX, LONGEST_LABEL, AlertContext, alert_of, alertname, label_value
from ragtide.drift.notify.alert_previews import (
    alertmanager_name,
    alerts_failure,
    load_refused_alerts,
    preview_alerts,
    send_sample_alerts,
)
from ragtide.drift.notify.alertmanager import AlertmanagerJob
from ragtide.drift.notify.alertmanager_target import Holding
from ragtide.drift.notify.annotations import AnnotationChannel, AnnotationSender
from ragtide.drift.notify.delivery import DeliveryJob, Target
from ragtide.drift.notify.messages import silenced
from ragtide.drift.notify.notification import SCHEMA_ID
from ragtide.drift.notify.outbox import Backlog, Message, Unsent, known_targets, load_unsent
from ragtide.drift.notify.previews import Answer, Preview, preview_notifications, sample_problem, send_sample
from ragtide.drift.notify.state_topics import InsightTopic, ProblemTopic
from ragtide.drift.notify.webhooks import WebhookChannel, WebhookSender

__all__ = [
    "ALERT_PREFIX",
    "LONGEST_LABEL",
    "SCHEMA_ID",
    "AlertContext",
    "AlertmanagerJob",
    "AnnotationChannel",
    "AnnotationSender",
    "Answer",
    "Backlog",
    "DeliveryJob",
    "Holding",
    "InsightTopic",
    "Message",
    "Preview",
    "ProblemTopic",
    "Target",
    "Unsent",
    "WebhookChannel",
    "WebhookSender",
    "alert_of",
    "alertmanager_name",
    "alertname",
    "alerts_failure",
    "known_targets",
    "label_value",
    "load_refused_alerts",
    "load_unsent",
    "preview_alerts",
    "preview_notifications",
    "sample_problem",
    "send_sample",
    "send_sample_alerts",
    "silenced",
]
