"""Deliver notifications: annotations to Grafana, CloudEvents to webhooks, states to topics, alerts to Alertmanager.

Messages go through an outbox. A `Channel` decides which changes a target gets and writes the messages; a `Sender`
delivers them. `DeliveryJob` does the rest for one target: order, retries, and what to do after a crash. Alerts are no
messages: `AlertmanagerJob` posts every open problem again and again.
"""

from ragtide.drift.notify.alert import AlertContext
from ragtide.drift.notify.alertmanager import AlertmanagerJob
from ragtide.drift.notify.alertmanager_target import Holding
from ragtide.drift.notify.annotations import AnnotationChannel, AnnotationSender
from ragtide.drift.notify.delivery import DeliveryJob, Target
from ragtide.drift.notify.outbox import Backlog
from ragtide.drift.notify.silences import ProblemSilence, load_silences
from ragtide.drift.notify.webhooks import WebhookChannel, WebhookSender

__all__ = [
    "AlertContext",
    "AlertmanagerJob",
    "AnnotationChannel",
    "AnnotationSender",
    "Backlog",
    "DeliveryJob",
    "Holding",
    "ProblemSilence",
    "Target",
    "WebhookChannel",
    "WebhookSender",
    "load_silences",
]
