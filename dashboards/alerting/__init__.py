"""Alerts that Grafana evaluates and routes: rules, contact points, policies, mute timings and message templates.

`alerting` renders them from the settings. They become files for Grafana's provisioning, manifests of resources, or
calls of Grafana's API.
"""

from ragtide.dashboards.alerting.build import Alerting, AlertingContext, alerting
from ragtide.dashboards.alerting.contact_points import (
    contact_point_names,
    preview_contact_points,
    routed_contact_point_names,
    send_sample_to_contact_points,
)
from ragtide.dashboards.alerting.files import provisioning, resource_files
from ragtide.dashboards.alerting.push import AlertPushResult, push_alerting

__all__ = [
    "AlertPushResult",
    "Alerting",
    "AlertingContext",
    "alerting",
    "contact_point_names",
    "preview_contact_points",
    "provisioning",
    "push_alerting",
    "resource_files",
    "routed_contact_point_names",
    "send_sample_to_contact_points",
]
