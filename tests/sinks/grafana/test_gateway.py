"""The gateway against a server that holds every call to the contract, and that fails in every way we know of."""

import logging
import threading
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr

from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.sinks.grafana import GrafanaGateway
from ragtide.sinks.grafana_answers import Busy
from ragtide.sinks.settings import GrafanaSettings
from tests.contracts.grafana_server import READ_ONLY_TOKEN, TOKEN, Fault, GrafanaServer

START = datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)
END = START + timedelta(minutes=5)
PAGE = b"<html><head><title>502</title></head><body><h1>Bad message</h1>gateway</body></html>"


class Pauses(list[float]):
    """Stands in for sleeping and remembers how long."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def gateway(server: GrafanaServer, pauses: Pauses | None = None, token: str = TOKEN, path: str = "") -> GrafanaGateway:
    return GrafanaGateway(server.settings(token, path=path), Pauses() if pauses is None else pauses)


def annotate(client: GrafanaGateway, *tags: str) -> int:
    return client.annotate(text="it moved", tags=tags or ("ragtide",), start=START, end=END)


def test_check_says_what_was_reached_and_that_the_token_is_good(grafana: GrafanaServer) -> None:
    assert gateway(grafana).check() == f"Grafana at {grafana.url}, version 13.0.0"
    with pytest.raises(ConfigError, match=r"401: Invalid API key.*grafana\.token"):
        gateway(grafana, token="glsa_wrong").check()


def test_a_path_before_the_api_is_kept(grafana: GrafanaServer) -> None:
    assert gateway(grafana, path="/behind/a/prefix/").check().endswith("/behind/a/prefix, version 13.0.0")


def test_folder_dashboard_and_data_source_are_made_once_and_overwritten(grafana: GrafanaServer) -> None:
    client = gateway(grafana)
    for title in ("first", "second"):
        client.ensure_folder("ragtide", "ragtide")
        client.put_dashboard({"uid": "a", "title": title}, "ragtide", "a reason")
        client.put_data_source(
            {
                "uid": "d",
                "name": "D",
                "type": "t",
                "access": "proxy",
                "jsonData": {},
                "secureJsonData": {"password": title},
            }
        )
    assert len(grafana.made("POST", "/api/folders")) == 1
    stored = client.dashboard("a")
    assert stored is not None
    assert (stored["title"], stored["version"]) == ("second", 2)
    assert client.dashboard("b") is None
    assert list(grafana.state.data_sources) == ["d"]
    assert grafana.made("PUT", "/api/datasources")[0].body["secureJsonData"] == {"password": "second"}


def test_annotations_are_found_by_all_tags_changed_and_deleted(grafana: GrafanaServer) -> None:
    client = gateway(grafana)
    first, second = annotate(client, "ragtide", "id:a:1"), annotate(client, "ragtide", "id:a b&c:1")
    assert [each.id for each in client.find_annotations("ragtide")] == [first, second]
    (found,) = client.find_annotations("ragtide", "id:a b&c:1")
    assert (found.id, found.text, found.tags, found.start, found.end) == (
        second, "it moved", ("ragtide", "id:a b&c:1"), START, END,
    )  # fmt: skip
    assert client.patch_annotation(first, tags=["ragtide", "resolved"], end=END + timedelta(hours=1))
    (changed,) = client.find_annotations("resolved")
    assert (changed.text, changed.start, changed.end) == ("it moved", START, END + timedelta(hours=1))
    client.delete_annotation(first)
    client.delete_annotation(first)
    assert not client.patch_annotation(first, text="gone")
    assert [each.id for each in client.find_annotations("ragtide")] == [second]


@pytest.mark.parametrize("status", [500, 502, 503, 504, 429, 408])
def test_a_short_fault_is_outlived(grafana: GrafanaServer, status: int) -> None:
    grafana.faults.append(Fault("GET", "/api/annotations", status, times=2))
    pauses = Pauses()
    assert gateway(grafana, pauses).find_annotations("ragtide") == []
    assert pauses == [0.5, 1.0]


def test_dropped_connections_are_outlived(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("GET", "/api/annotations", times=3))
    assert gateway(grafana).find_annotations("ragtide") == []


def test_a_long_fault_is_transient_after_four_attempts(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("GET", "/api/annotations", 502, PAGE, {"Content-Type": "text/html"}, times=99))
    with pytest.raises(Transient, match=r"GET /api/annotations with 502: 502 Bad message gateway"):
        gateway(grafana).find_annotations("ragtide")
    assert grafana.faults[0].times == 95


def test_retry_after_is_obeyed_and_a_long_one_is_left_to_the_next_run(grafana: GrafanaServer) -> None:
    pauses = Pauses()
    grafana.faults.append(Fault("POST", "/api/annotations", 429, headers={"Retry-After": "7"}))
    annotate(gateway(grafana, pauses))
    assert pauses == [7.0]
    grafana.faults.append(Fault("POST", "/api/annotations", 429, headers={"Retry-After": "3600"}))
    with pytest.raises(Transient):
        annotate(gateway(grafana, pauses))
    assert pauses == [7.0]


@pytest.mark.parametrize("status", [None, 500, 503])
def test_an_annotation_that_may_have_been_added_is_not_sent_again(grafana: GrafanaServer, status: int | None) -> None:
    grafana.faults.append(Fault("POST", "/api/annotations", status, after=True))
    client = gateway(grafana)
    with pytest.raises(Transient):
        annotate(client, "id:x:1")
    assert len(grafana.made("POST", "/api/annotations")) == 1
    assert len(client.find_annotations("id:x:1")) == 1


def test_a_folder_whose_making_was_not_confirmed_is_made_once(grafana: GrafanaServer) -> None:
    grafana.faults.append(Fault("POST", "/api/folders", after=True))
    gateway(grafana).ensure_folder("ragtide", "ragtide")
    assert list(grafana.state.folders) == ["ragtide"]


def test_a_server_that_does_not_answer_in_time_is_transient(grafana: GrafanaServer) -> None:
    released = threading.Event()
    grafana.faults.append(Fault("GET", "/api/annotations", 200, b"[]", hold=released, times=4))
    try:
        with pytest.raises(Transient, match="did not answer GET /api/annotations"):
            GrafanaGateway(grafana.settings(timeout_s=0.05), Pauses()).find_annotations("ragtide")
    finally:
        released.set()


def test_nobody_there_is_transient() -> None:
    settings = GrafanaSettings(url="http://127.0.0.1:1", token=SecretStr(TOKEN))
    said = r"Grafana at http://127\.0\.0\.1:1 did not answer GET /api/health: no connection"
    with pytest.raises(Busy, match=said) as raised:
        GrafanaGateway(settings, Pauses()).check()
    assert not raised.value.may_have_arrived


def test_empty_answers_are_fine(grafana: GrafanaServer) -> None:
    number = annotate(gateway(grafana))
    grafana.faults.append(Fault("PATCH", "/api/annotations", 204, b""))
    grafana.faults.append(Fault("DELETE", "/api/annotations", 200, b""))
    assert gateway(grafana).patch_annotation(number, text="new")
    gateway(grafana).delete_annotation(number)


@pytest.mark.parametrize(
    ("status", "body", "headers", "message"),
    [
        (200, PAGE, {}, "something else than JSON"),
        (200, b"{}", {}, "gave a dict where Grafana gives a list"),
        (
            302,
            b"",
            {"Location": "https://sso.example.org/login?next=/"},
            r"redirects to https://sso\.example\.org: set",
        ),
        (401, b'"message"', {}, r"grafana\.token"),
        (403, b"<p>no</p>", {}, "role Editor"),
    ],
)
def test_what_a_person_must_change(
    grafana: GrafanaServer, status: int, body: bytes, headers: dict[str, str], message: str
) -> None:
    grafana.faults.append(Fault("GET", "/api/annotations", status, body, headers))
    with pytest.raises(ConfigError, match=message):
        gateway(grafana).find_annotations("ragtide")


def test_missing_rights_are_named(grafana: GrafanaServer) -> None:
    with pytest.raises(ConfigError, match="annotations:create"):
        annotate(gateway(grafana, token=READ_ONLY_TOKEN))


def test_an_error_names_what_grafana_names(grafana: GrafanaServer) -> None:
    """Masks are for errors of contact points alone."""
    said = b'{"message": "data source ragtide-clickhouse-0123456789 has no file /etc/grafana/certs/ca2.pem"}'
    grafana.faults.append(Fault("GET", "/api/annotations", 400, said))
    with pytest.raises(Refused, match=r"ragtide-clickhouse-0123456789 has no file /etc/grafana/certs/ca2\.pem$"):
        gateway(grafana).find_annotations("ragtide")


def test_refused_content_is_refused(grafana: GrafanaServer) -> None:
    with pytest.raises(Refused, match="400: tags length exceeds"):
        annotate(gateway(grafana), *(f"{i:03d}" + "x" * 90 for i in range(6)))


@pytest.mark.parametrize("url", ["", "grafana.example.org", "ftp://a", "https://a/?x=1", "http://a:b"])
def test_a_url_that_is_none_says_what_is_wanted(url: str) -> None:
    with pytest.raises(ConfigError, match=r"grafana\.url"):
        GrafanaGateway(GrafanaSettings(url=url, token=SecretStr("t")))


@pytest.mark.parametrize("token", ["", "glsa_a\nb", "glsa_é"])
def test_a_token_that_is_none_says_so_and_is_not_quoted(token: str) -> None:
    with pytest.raises(ConfigError, match=r"grafana\.token") as raised:
        GrafanaGateway(GrafanaSettings(url="https://a", token=SecretStr(token)))
    assert not token or token not in str(raised.value)


def test_the_token_is_in_no_log_and_no_error(grafana: GrafanaServer, caplog: pytest.LogCaptureFixture) -> None:
    grafana.faults.append(Fault("GET", "/api/annotations", 500, times=99))
    with caplog.at_level(logging.DEBUG):
        gateway(grafana).check()
        with pytest.raises(Transient) as raised:
            gateway(grafana).find_annotations("ragtide")
    assert TOKEN not in caplog.text + str(raised.value) + repr(raised.value.__cause__)
    assert {call.headers["Authorization"] for call in grafana.calls} == {f"Bearer {TOKEN}"}
    assert {call.headers["X-Grafana-Org-Id"] for call in grafana.calls} == {"1"}
