"""Contact points as Grafana lists them, and errors without secrets."""

import re

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.grafana_contact_points import ContactPointGateway, redact
from tests.contracts.grafana_receivers_state import NAMESPACE
from tests.contracts.grafana_server import Fault, GrafanaServer

RECEIVERS = f"/apis/notifications.alerting.grafana.app/v1beta1/namespaces/{NAMESPACE}/receivers"
PASSWORD = "Tr0ub4dor&3-correcthorsebattery1"  # a part of it looks like a token


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://grafana.example.org:3000", "see https://grafana.example.org:3000"),
        ('Post "http://kim:pw@host:8080?token=1": EOF', 'Post "http://host:8080/…": EOF'),
        ("token xoxb-1234567890-abcdefgh was revoked", "token … was revoked"),
        ("dial tcp 10.0.0.1:443: connect: connection refused", "dial tcp 10.0.0.1:443: connect: connection refused"),
        ("lookup abcdefghijklmnopqrstuvwxyz.example.org", "lookup abcdefghijklmnopqrstuvwxyz.example.org"),
        (f"kim:{PASSWORD} refused", "kim:… refused"),
        ('Post "https://example.org/a\'b": EOF', 'Post "https://example.org/…": EOF'),
    ],
)
def test_errors_keep_hosts_and_lose_secrets(text: str, shown: str) -> None:
    assert redact(text, {"Tr0ub4dor", PASSWORD, "https://example.org/a'b"}) == shown


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/frontend/settings", b"{}", "gave a NoneType where Grafana gives a str (namespace)"),
        (RECEIVERS, b"{}", "gave a NoneType where Grafana gives a list (items)"),
        (RECEIVERS, b'{"items": [7]}', "gave a int where Grafana gives a dict (items)"),
        (RECEIVERS, b'{"items": [{}]}', "gave a NoneType where Grafana gives a dict (metadata)"),
        (RECEIVERS, b'{"items": [{"metadata": {"name": "x"}}]}', "gives a dict (spec)"),
        (RECEIVERS, b'{"items": [{"metadata": {}, "spec": {"title": "x", "integrations": []}}]}', "gives a str (name)"),
        (RECEIVERS, b'{"items": [{"metadata": {"name": "x"}, "spec": {"integrations": []}}]}', "gives a str (title)"),
        (RECEIVERS, b'{"items": [{"metadata": {"name": "x"}, "spec": {"title": "x", "integrations": null}}]}',
         "gives a list (integrations)"),
        (RECEIVERS, b'{"items": [{"metadata": {"name": "x"}, "spec": {"title": "x", "integrations": [{}]}}]}',
         "gives a str (type)"),
    ],
)  # fmt: skip
def test_a_list_of_another_shape_is_a_sentence(grafana: GrafanaServer, path: str, body: bytes, said: str) -> None:
    grafana.faults.append(Fault("GET", path, 200, body))
    with pytest.raises(ConfigError, match=f"{re.escape(said)}: .*version 13 or newer"):
        ContactPointGateway(grafana.settings()).receivers()
