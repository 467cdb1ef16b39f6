"""Deliver notifications through an outbox: annotations to Grafana, CloudEvents to webhooks, states to topics.

A `Channel` decides which changes a target gets and writes the messages; a `Sender` delivers them. `DeliveryJob` does
the rest for one target: order, retries, and what to do after a crash.
"""

from ragtide.drift.notify.annotations import AnnotationChannel, AnnotationSender
from ragtide.drift.notify.delivery import DeliveryJob, Target
from ragtide.drift.notify.notification import SCHEMA_ID
from ragtide.drift.notify.outbox import Backlog, Message, Unsent, known_targets, load_unsent
from ragtide.drift.notify.previews import Preview, preview, send_sample
from ragtide.drift.notify.state_topics import InsightTopic, ProblemTopic
from ragtide.drift.notify.webhooks import WebhookChannel, WebhookSender

__all__ = [
    "SCHEMA_ID",
    "AnnotationChannel",
    "AnnotationSender",
    "Backlog",
    "DeliveryJob",
    "InsightTopic",
    "Message",
    "Preview",
    "ProblemTopic",
    "Target",
    "Unsent",
    "WebhookChannel",
    "WebhookSender",
    "known_targets",
    "load_unsent",
    "preview",
    "send_sample",
]
