"""Push problem events through an outbox to Grafana as annotations, and open problems to Alertmanager as alerts."""

from ragtide.drift.notify.alert import AlertContext
from ragtide.drift.notify.alertmanager import AlertmanagerJob
from ragtide.drift.notify.alertmanager_target import Holding
from ragtide.drift.notify.delivery import DeliveryJob
from ragtide.drift.notify.outbox import Backlog

__all__ = [
    "AlertContext",
    "AlertmanagerJob",
    "Backlog",
    "DeliveryJob",
    "Holding",
]
