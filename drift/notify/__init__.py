"""Push problem events through an outbox to Grafana as annotations, exactly once in effect."""

from ragtide.drift.notify.delivery import DeliveryJob
from ragtide.drift.notify.outbox import Backlog

__all__ = [
    "Backlog",
    "DeliveryJob",
]
