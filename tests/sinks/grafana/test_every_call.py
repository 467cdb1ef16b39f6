"""Every call of the gateway, answered with every status that Grafana or a proxy before it may give."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from ragtide.evaluators.errors import ConfigError, RagtideError, Refused, Transient
from ragtide.sinks.grafana import GrafanaGateway
from ragtide.sinks.grafana_alerting import AlertingGateway
from ragtide.sinks.grafana_contact_points import ContactPointGateway, Integration, Receiver
from tests.contracts.check_grafana import OURS, RESOURCES, VERBS, load
from tests.contracts.grafana_receivers_state import NAMESPACE
from tests.contracts.grafana_server import Fault, GrafanaServer

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAGE = b"<html><head><title>Oops</title></head><body><h1>It broke</h1><script>x</script></body></html>"
SOURCE = {"uid": "d", "name": "D", "type": "t", "access": "proxy", "jsonData": {}}
DASHBOARD = {"uid": "a", "title": "A"}
BASE = "/api/v1/provisioning"
NAMESPACES = "/apis/notifications.alerting.grafana.app/v1beta1/namespaces"
POINT = {"uid": "p", "name": "P", "type": "webhook", "settings": {"url": "https://a"}, "disableResolveMessage": False}
TIMING = {"name": "nights", "time_intervals": [{"times": [{"start_time": "00:00", "end_time": "06:00"}]}]}
RULE = {
    "uid": "r", "orgID": 1, "folderUID": "f", "ruleGroup": "g", "title": "R", "condition": "B", "noDataState": "OK",
    "execErrState": "Error", "for": "1m", "labels": {}, "annotations": {}, "isPaused": False,
    "data": [
        {"refId": ref, "queryType": "", "datasourceUid": "d", "relativeTimeRange": {"from": 60, "to": 0}, "model": {}}
        for ref in ("A", "B")
    ],
}  # fmt: skip
INTEGRATION = Integration("webhook", {
    "uid": "p", "type": "webhook", "version": "v1", "settings": {"url": "https://a"}, "disableResolveMessage": False,
})  # fmt: skip
RECEIVER = Receiver("UA", "P", (INTEGRATION,))
GROUP = {"title": "g", "folderUid": "f", "interval": 60, "rules": [RULE]}


class Call(NamedTuple):
    """A request that the gateway makes, and how to make it do so."""

    verb: str
    path: str
    of: str  # the path in our description
    make: Callable[[Any], Any]
    absent: bool = False  # 404 says that there is none, which is an answer
    gateway: type[GrafanaGateway] = AlertingGateway


CALLS = [
    Call("GET", "/api/health", "/api/health", lambda g: g.check()),
    Call("GET", "/api/folders", "/api/folders", lambda g: g.check()),
    Call("GET", "/api/folders/f", "/api/folders/{folder_uid}", lambda g: g.ensure_folder("f", "F"), absent=True),
    Call("POST", "/api/folders", "/api/folders", lambda g: g.ensure_folder("f", "F")),
    Call("GET", "/api/dashboards/uid/a", "/api/dashboards/uid/{uid}", lambda g: g.dashboard("a"), absent=True),
    Call("POST", "/api/dashboards/db", "/api/dashboards/db", lambda g: g.put_dashboard(DASHBOARD, "ragtide", "why")),
    Call("GET", "/api/datasources/uid/d", "/api/datasources/uid/{uid}", lambda g: g.put_data_source(SOURCE),
         absent=True),
    Call("POST", "/api/datasources", "/api/datasources", lambda g: g.put_data_source(SOURCE)),
    Call("PUT", "/api/datasources/uid/d", "/api/datasources/uid/{uid}", lambda g: g.put_data_source(SOURCE)),
    Call("GET", "/api/annotations", "/api/annotations", lambda g: g.find_annotations("ragtide")),
    Call("POST", "/api/annotations", "/api/annotations",
         lambda g: g.annotate(text="t", tags=["ragtide"], start=NOW, end=NOW)),
    Call("PATCH", "/api/annotations/1", "/api/annotations/{annotation_id}", lambda g: g.patch_annotation(1, text="t"),
         absent=True),
    Call("DELETE", "/api/annotations/1", "/api/annotations/{annotation_id}", lambda g: g.delete_annotation(1),
         absent=True),
    Call("GET", f"{BASE}/alert-rules", f"{BASE}/alert-rules", lambda g: g.rules()),
    Call("DELETE", f"{BASE}/alert-rules/r", BASE + "/alert-rules/{UID}", lambda g: g.delete_rule("r"), absent=True),
    Call("GET", f"{BASE}/folder/f/rule-groups/g", BASE + "/folder/{FolderUID}/rule-groups/{Group}",
         lambda g: g.rule_group("f", "g"), absent=True),
    Call("PUT", f"{BASE}/folder/f/rule-groups/g", BASE + "/folder/{FolderUID}/rule-groups/{Group}",
         lambda g: g.put_rule_group(GROUP)),
    Call("GET", f"{BASE}/contact-points", f"{BASE}/contact-points", lambda g: g.contact_points()),
    Call("POST", f"{BASE}/contact-points", f"{BASE}/contact-points", lambda g: g.add_contact_point(POINT)),
    Call("PUT", f"{BASE}/contact-points/p", BASE + "/contact-points/{UID}", lambda g: g.put_contact_point(POINT)),
    Call("POST", f"{BASE}/mute-timings", f"{BASE}/mute-timings", lambda g: g.add_mute_timing(TIMING)),
    Call("GET", f"{BASE}/mute-timings/nights", BASE + "/mute-timings/{name}", lambda g: g.mute_timing("nights"),
         absent=True),
    Call("PUT", f"{BASE}/mute-timings/nights", BASE + "/mute-timings/{name}", lambda g: g.put_mute_timing(TIMING)),
    Call("GET", f"{BASE}/templates/t", BASE + "/templates/{name}", lambda g: g.template("t"), absent=True),
    Call("PUT", f"{BASE}/templates/t", BASE + "/templates/{name}",
         lambda g: g.put_template({"name": "t", "template": "x"})),
    Call("GET", f"{BASE}/policies", f"{BASE}/policies", lambda g: g.policies()),
    Call("PUT", f"{BASE}/policies", f"{BASE}/policies",
         lambda g: g.put_policies({"receiver": "grafana-default-email"})),
    Call("GET", "/api/frontend/settings", "/api/frontend/settings", lambda g: g.receivers(),
         gateway=ContactPointGateway),
    Call("GET", f"{NAMESPACES}/{NAMESPACE}/receivers", f"{NAMESPACES}/{{namespace}}/receivers",
         lambda g: g.receivers(), gateway=ContactPointGateway),
    Call("POST", f"{NAMESPACES}/{NAMESPACE}/receivers/UA/test", f"{NAMESPACES}/{{namespace}}/receivers/{{name}}/test",
         lambda g: g.test_integration(RECEIVER, INTEGRATION, {"app": "a"}, {}), gateway=ContactPointGateway),
]  # fmt: skip
NEEDS_AN_ANSWER = {
    *("GET /api/folders", "GET /api/dashboards/uid/a", "GET /api/annotations", "POST /api/annotations"),
    *(f"GET {BASE}/alert-rules", f"GET {BASE}/contact-points", "GET /api/frontend/settings"),
    *(f"GET {NAMESPACES}/{NAMESPACE}/receivers", f"POST {NAMESPACES}/{NAMESPACE}/receivers/UA/test"),
}
ERRORS: dict[int, tuple[bytes, type[RagtideError]]] = {
    401: (b'{"message": "Invalid API key"}', ConfigError),
    403: (b'{"message": "You need more permissions"}', ConfigError),
    404: (b'{"message": "Not found"}', Refused),
    409: (b'{"message": "It exists already"}', Refused),
    412: (b'{"message": "The dashboard has been changed by someone else", "status": "version-mismatch"}', Refused),
    422: (b'{"message": "Unprocessable"}', Refused),
    429: (b'{"message": "Slow down"}', Transient),
    500: (PAGE, Transient),
    503: (b"", Transient),
}


def ids(call: Call) -> str:
    return f"{call.verb} {call.path}"


def test_every_operation_of_our_description_is_called() -> None:
    paths = load(OURS)["paths"] | load(RESOURCES)["paths"]
    described = {(verb.upper(), path) for path, item in paths.items() for verb in VERBS if verb in item}
    assert {(call.verb, call.of) for call in CALLS} == described


@pytest.mark.parametrize("status", ERRORS)
@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_an_error_is_a_sentence_that_names_call_and_status(grafana: GrafanaServer, call: Call, status: int) -> None:
    prepare(grafana, call)
    body, kind = ERRORS[status]
    pauses: list[float] = []
    headers = {"Retry-After": "2"} if status == 429 else {}
    grafana.faults.append(Fault(call.verb, call.path, status, body, headers, times=99))
    gateway = call.gateway(grafana.settings(), sleep=pauses.append)
    if status == 404 and call.absent:
        call.make(gateway)
        return
    with pytest.raises(kind) as raised:
        call.make(gateway)
    said = str(raised.value)
    assert f"{call.verb} {call.path} with {status}: " in said
    assert "<" not in said
    assert "\n" not in said
    assert pauses == ([2.0, 2.0, 2.0] if status == 429 else pauses)


@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_an_empty_answer_is_done_or_an_error_of_ours(grafana: GrafanaServer, call: Call) -> None:
    prepare(grafana, call)
    grafana.faults.append(Fault(call.verb, call.path, 204, b""))
    gateway = call.gateway(grafana.settings(), sleep=lambda _: None)
    if ids(call) in NEEDS_AN_ANSWER:
        with pytest.raises(ConfigError, match="where Grafana gives"):
            call.make(gateway)
    else:
        call.make(gateway)


@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_no_answer_in_time_is_transient_and_names_the_call(grafana: GrafanaServer, call: Call) -> None:
    prepare(grafana, call)
    released = threading.Event()
    grafana.faults.append(Fault(call.verb, call.path, 200, b"{}", hold=released, times=4))
    try:
        with pytest.raises(
            Transient, match=rf"did not answer {call.verb} {call.path} within grafana\.timeout_s \(0\.05 s\)"
        ):
            call.make(call.gateway(grafana.settings(timeout_s=0.05), sleep=lambda _: None))
    finally:
        released.set()


@pytest.mark.parametrize("call", CALLS, ids=ids)
def test_a_connection_that_ends_is_transient_and_names_the_call(grafana: GrafanaServer, call: Call) -> None:
    prepare(grafana, call)
    grafana.faults.append(Fault(call.verb, call.path, times=4))
    with pytest.raises(Transient, match=f"did not answer {call.verb} {call.path}: the connection ended"):
        call.make(call.gateway(grafana.settings(), sleep=lambda _: None))


def prepare(grafana: GrafanaServer, call: Call) -> None:
    """Store what the call needs to get as far as its own request."""
    gateway = AlertingGateway(grafana.settings(), lambda _: None)
    if call.verb == "PUT" and call.path.startswith("/api/datasources"):
        gateway.put_data_source(SOURCE)
    if call.path.startswith(NAMESPACES):
        gateway.add_contact_point(POINT)
    if call.path.startswith("/api/dashboards"):
        gateway.ensure_folder("ragtide", "ragtide")
    if call.path.startswith(f"{BASE}/folder"):
        gateway.ensure_folder("f", "F")
    if call.path.startswith("/api/annotations/"):
        gateway.annotate(text="t", tags=["ragtide"], start=NOW, end=NOW)
