"""Answers of an Alertmanager, good ones and every kind of bad one: what each means to the caller, in a sentence."""

import ssl
import threading
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import requests
import trustme
from pydantic import SecretStr, ValidationError

from ragtide.evaluators.errors import ConfigError, RagtideError, Refused
from ragtide.sinks.alertmanager import AlertmanagerGateway, Busy, PostableAlert, Untrusted
from ragtide.sinks.alertmanager_settings import AlertmanagerSettings
from tests.contracts.alertmanager_server import AlertmanagerFault, AlertmanagerServer, serving
from tests.infra.ports import free_ports

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABELS = {"alertname": "RagtideDrift", "severity": "warning", "type": "accuracy", "problem_id": "p1"}
TEXTS = {"title": "t", "summary": "s", "description": "d"}
ALERT = PostableAlert(LABELS, TEXTS, NOW, NOW + timedelta(minutes=3))
HTML = b"<html><head><title>502</title></head><body><h1>Bad gateway</h1></body></html>"


@pytest.fixture
def server() -> Iterator[AlertmanagerServer]:
    with serving() as made:
        yield made


def gateway(url: str, **settings: Any) -> AlertmanagerGateway:
    return AlertmanagerGateway(url, AlertmanagerSettings(**{"urls": (url,), "timeout_s": 5.0, **settings}))


def test_it_posts_and_tells_the_clock_of_alertmanager(server: AlertmanagerServer) -> None:
    clock = gateway(server.url).post([ALERT])
    assert clock is not None
    assert abs(clock - datetime.now(UTC)) < timedelta(minutes=1)
    [[posted]] = server.posted
    assert posted["endsAt"] == "2026-03-01T12:03:00Z"
    assert "generatorURL" not in posted
    assert "Authorization" not in server.headers[0]


def test_check_names_address_version_and_cluster(server: AlertmanagerServer) -> None:
    line = gateway(server.url).check()
    assert line == f"Alertmanager at {server.url}, version 0.25.0, cluster ready with 2 members"


def test_credentials_go_with_each_request(server: AlertmanagerServer) -> None:
    gateway(server.url, user="jobs", password=SecretStr("pä:ss")).post([ALERT])
    kind, _, encoded = server.headers[0]["Authorization"].partition(" ")
    assert (kind, b64decode(encoded).decode()) == ("Basic", "jobs:pä:ss")
    gateway(server.url, bearer_token=SecretStr("token-1")).post([ALERT])
    assert server.headers[1]["Authorization"] == "Bearer token-1"


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (400, b'"invalid label set: invalid label name \\"a-b\\""', Refused, 'invalid label name "a-b"'),
        (413, HTML, Refused, "413: 502 Bad gateway"),
        (422, b'{"code":602,"message":"labels in body is required"}', Refused, "labels in body is required"),
        (401, b'"no"', ConfigError, "Correct alertmanager.user and password"),
        (403, b'"no"', ConfigError, "or alertmanager.bearer_token"),
        (404, b"404 page not found", ConfigError, "is its path prefix in alertmanager.urls?"),
        (408, b"", Busy, "408: no message"),
        (429, b"slow down", Busy, "429: slow down"),
        (500, HTML, Busy, "500: 502 Bad gateway"),
        (503, b'"starting"', Busy, "503: starting"),
        (407, b"log in", ConfigError, "check alertmanager.urls and what lies between"),
        (418, b"short and stout", ConfigError, "418: short and stout"),
    ],
)
def test_each_status_is_an_error_that_says_what_to_do(
    server: AlertmanagerServer, status: int, body: bytes, kind: type[RagtideError], says: str
) -> None:
    is_json = body[:1] in (b'"', b"{")
    headers = {"Content-Type": "application/json" if is_json else "text/html"}
    server.faults.append(AlertmanagerFault("POST", "/alerts", status, body, headers))
    with pytest.raises(kind) as raised:
        gateway(server.url).post([ALERT])
    assert says in str(raised.value)
    assert server.url in str(raised.value)


def test_retry_after_is_read_as_seconds_or_as_a_date(server: AlertmanagerServer) -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    for given, least, most in (("30", 30, 30), (in_a_minute, 50, 60), ("soon", 0, 0), ("999999999999", 1, 86400)):
        server.faults.append(AlertmanagerFault("POST", "/alerts", 429, headers={"Retry-After": given}))
        with pytest.raises(Busy) as raised:
            gateway(server.url).post([ALERT])
        assert least <= raised.value.retry_after_s <= most, given


def test_a_hang_ends_after_the_timeout(server: AlertmanagerServer) -> None:
    release = threading.Event()
    server.faults.append(AlertmanagerFault("POST", "/alerts", hold=release))
    with pytest.raises(Busy, match=r"did not answer POST /api/v2/alerts within 0\.2 s") as raised:
        gateway(server.url, timeout_s=0.2).post([ALERT])
    assert raised.value.is_sent
    release.set()


def test_where_nothing_listens_nothing_was_sent() -> None:
    with pytest.raises(Busy, match="cannot be reached") as raised:
        gateway(f"http://127.0.0.1:{free_ports(1)}").post([ALERT])
    assert not raised.value.is_sent


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_no_other_host_sees_the_token(server: AlertmanagerServer, status: int) -> None:
    with serving() as other:
        where = {"Location": f"{other.url}/api/v2/alerts"}
        server.faults.append(AlertmanagerFault("POST", "/alerts", status, b"", where))
        with pytest.raises(ConfigError, match=f"redirects POST /api/v2/alerts to {other.url}"):
            gateway(server.url, bearer_token=SecretStr("secret-token")).post([ALERT])
        assert other.headers == []


@pytest.mark.parametrize("body", [HTML, b"[]", b"{", b'{"uptime": "soon"}', b"\xff\xfe"])
def test_something_else_than_alertmanager_is_named_as_such(server: AlertmanagerServer, body: bytes) -> None:
    server.faults.append(AlertmanagerFault("GET", "/status", 200, body, {"Content-Type": "text/html"}))
    with pytest.raises(ConfigError, match="is it one, version"):
        gateway(server.url).status()


def test_a_foreign_certificate_is_refused_and_the_right_authority_accepted(tmp_path: Path) -> None:
    ours, theirs, clients = trustme.CA(), trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(tmp_path / "ours.pem")
    theirs.cert_pem.write_to_path(tmp_path / "theirs.pem")
    client = clients.issue_cert("jobs@ragtide.test")
    client.private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.issue_cert("127.0.0.1").configure_cert(context)
    clients.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with serving(context) as server:
        with pytest.raises(ConfigError, match=r"no trusted TLS connection: .*issuer.*alertmanager\.ca_file"):
            gateway(server.url, ca_file=tmp_path / "theirs.pem").post([ALERT])
        gateway(server.url, ca_file=tmp_path / "ours.pem", cert_file=tmp_path / "client.pem").post([ALERT])
        assert len(server.posted) == 1
        elsewhere = server.url.replace("127.0.0.1", "localhost")
        with pytest.raises(ConfigError, match="Hostname mismatch"):
            gateway(elsewhere, ca_file=tmp_path / "ours.pem", cert_file=tmp_path / "client.pem").post([ALERT])
        with pytest.raises(ConfigError, match=r"alertmanager\.cert_file if it asks for one"):
            gateway(server.url, ca_file=tmp_path / "ours.pem").post([ALERT])
    with pytest.raises(ConfigError, match=r"alertmanager\.ca_file: no such file"):
        gateway("https://127.0.0.1", ca_file=tmp_path / "none.pem")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"urls": ["ftp://a"]}, "no base URL"),
        ({"urls": ["http://a", "http://a/"]}, "named twice"),
        ({"urls": ["http://a/api/v2/alerts"]}, "leave out /api"),
        ({"urls": ["http://a?x=1"]}, "nothing more"),
        ({"user": "u", "bearer_token": "t"}, "not both"),
        ({"password": "p"}, "needs alertmanager.user"),
        ({"key_file": "k"}, "needs alertmanager.cert_file"),
        ({"labels": {"severity": "page"}}, "choose another"),
        ({"labels": {"a-b": "x"}}, "pattern"),
        ({"runbook_url": "https://wiki/{type}"}, "valid: {kind}"),
    ],
)
def test_settings_that_cannot_work_are_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says.replace("{", r"\{")):
        AlertmanagerSettings.model_validate(given)


def test_a_password_in_a_url_is_refused_and_in_no_message() -> None:
    with pytest.raises(ValidationError) as raised:
        AlertmanagerSettings.model_validate({"urls": ["http://jobs:hunter2@a"]})
    assert "alertmanager.password" in raised.value.errors()[0]["msg"]
    assert "hunter2" not in raised.value.errors()[0]["msg"]


def test_a_token_that_cannot_be_sent_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as raised:
        gateway("http://a", bearer_token=SecretStr("two\nlines"))
    assert "two" not in str(raised.value)


@pytest.mark.parametrize(
    ("error", "is_sent"),
    [
        (requests.exceptions.ConnectTimeout(), False),
        (requests.exceptions.ReadTimeout(), True),
        (requests.exceptions.SSLError(), False),
    ],
)
def test_whether_a_request_may_have_arrived_is_known(
    monkeypatch: pytest.MonkeyPatch, error: Exception, is_sent: bool
) -> None:
    """The end of an alert that was never sent is not posted."""

    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(requests.Session, "request", fails)
    with pytest.raises((Busy, Untrusted)) as raised:
        gateway("http://127.0.0.1:9").post([ALERT])
    assert isinstance(raised.value, Busy | Untrusted)
    assert raised.value.is_sent == is_sent
