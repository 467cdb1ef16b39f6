"""Deliver notifications through an outbox: annotations to Grafana, CloudEvents to webhooks, states to topics.

A `Channel` decides which changes a target gets and writes the messages; a `Sender` delivers them. `DeliveryJob` does
the rest for one target: order, retries, and what to do after a crash.
"""

from ragtide.drift.notify.annotations import AnnotationChannel, AnnotationSender
from ragtide.drift.notify.delivery import DeliveryJob, Target
from ragtide.drift.notify.outbox import Backlog
from ragtide.drift.notify.webhooks import WebhookChannel, WebhookSender

__all__ = [
    "AnnotationChannel",
    "AnnotationSender",
    "Backlog",
    "DeliveryJob",
    "Target",
    "WebhookChannel",
    "WebhookSender",
]
