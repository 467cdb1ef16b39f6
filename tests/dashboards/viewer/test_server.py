"""The viewer's answers over the real engine: by name, read only, within limits, errors as sentences."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from ragtide.dashboards.build import build
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.lint import panels, queries
from tests.dashboards.sample_rows import APP, NOON, window
from tests.dashboards.shown_application import ALL, END, Shown, showing
from tests.dashboards.test_hostile_names import HOSTILE
from tests.dashboards.viewer.serving import Served, serving

pytestmark = pytest.mark.clickhouse

UID = "ragtide-application"
START_MS, END_MS = (int(time.timestamp() * 1000) for time in (NOON, END))


@pytest.fixture(scope="module")
def shown(clickhouse_server: EmbeddedClickHouse) -> Iterator[Shown]:
    with showing(clickhouse_server) as shared:
        metrics = ("operations.error", "operations.latency_seconds", "inputs.question_words")
        named = [window(metric, NOON, [1.0], app=name) for name in HOSTILE.values() for metric in metrics]
        shared.database.insert("windows", named)
        yield shared


@pytest.fixture(scope="module")
def viewer(shown: Shown) -> Iterator[Served]:
    with serving(shown.database) as served:
        yield served


def panel_query(title: str, ref: str = "A") -> dict[str, Any]:
    document = build(load())["application"]
    (panel,) = [each for each in panels(document) if each.get("title") == title and each["type"] == "stat"]
    return {"key": title, "kind": "panel", "name": str(panel["id"]), "ref": ref}


def body(*queries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"uid": UID, "from": START_MS, "to": END_MS, "variables": dict(ALL), "queries": list(queries), **changes}


def answers(response: requests.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    return {line["key"]: line for line in map(json.loads, response.text.splitlines())}


def values(answer: dict[str, Any]) -> list[dict[str, Any]]:
    names = [column["name"] for column in answer["answer"]["meta"]]
    return [dict(zip(names, row, strict=True)) for row in answer["answer"]["data"]]


def test_dashboards_come_without_sql(viewer: Served) -> None:
    documents = {each["uid"]: each for each in build(load()).values()}
    listed = viewer.get("/api/dashboards").json()["dashboards"]
    assert [each["uid"] for each in listed] == list(documents)
    for each in listed:
        answer = viewer.get(f"/api/dashboards/{each['uid']}")
        assert answer.headers["Content-Encoding"] in ("gzip", "deflate")
        assert answer.json()["title"] == each["title"]
        asked = [sql for _, sql in queries(documents[each["uid"]])]
        assert not [sql for sql in asked if json.dumps(sql) in answer.text]
        assert '"rawSql"' not in answer.text
        assert ("datasource" in each["variables"]) is bool(asked)


def test_every_query_of_every_dashboard_is_answered_by_name(viewer: Served) -> None:
    for name, document in build(load()).items():
        if name == "runbooks":  # it asks for nothing
            continue
        named = [
            {
                "key": f"{panel['id']}{ref}",
                "kind": "panel",
                "name": str(panel["id"]),
                "ref": ref,
            }
            for panel in panels(document)
            for ref in [target["refId"] for target in panel.get("targets", [])]
        ]
        variables = [each["name"] for each in document["templating"]["list"] if each["type"] == "query"]
        named += [{"key": f"v {name}", "kind": "variable", "name": name} for name in variables]
        shown = [each["name"] for each in document["annotations"]["list"] if "rawSql" in each.get("target", {})]
        named += [{"key": f"a {name}", "kind": "annotation", "name": name} for name in shown]
        found = answers(viewer.post("/api/query", body(*named[:200], uid=document["uid"])))
        found |= answers(viewer.post("/api/query", body(*named[200:], uid=document["uid"]))) if named[200:] else {}
        assert set(found) == {each["key"] for each in named}
        assert [line for line in found.values() if "error" in line] == []


def test_the_numbers_are_those_that_grafana_shows(viewer: Served, shown: Shown) -> None:
    for title in ("Traces", "Open problems", "Errors", "Cost"):
        found = values(answers(viewer.post("/api/query", body(panel_query(title))))[title])
        assert found == shown.rows(f"stat {title} A"), title


def test_the_statement_that_runs_is_shown(viewer: Served) -> None:
    sql = viewer.post("/api/sql", body(panel_query("Traces"))).json()["Traces"]
    assert f"toDateTime({START_MS // 1000})" in sql
    assert "$" not in sql


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_name_finds_its_own_rows_only(viewer: Served, kind: str) -> None:
    query = panel_query("Traces")
    found = answers(viewer.post("/api/query", body(query, variables={**ALL, "app": HOSTILE[kind]})))
    assert values(found["Traces"]) == [{"traces": 11}]
    elsewhere = answers(viewer.post("/api/query", body(query, variables={**ALL, "app": HOSTILE[kind] + "x"})))
    assert values(elsewhere["Traces"]) == []


def test_names_come_back_as_they_are(viewer: Served) -> None:
    found = answers(viewer.post("/api/query", body({"key": "app", "kind": "variable", "name": "app"})))
    assert {APP, *HOSTILE.values()} <= {row[0] for row in found["app"]["answer"]["data"]}


def test_times_are_told_with_their_zone(viewer: Served) -> None:
    found = answers(viewer.post("/api/query", body({"key": "a", "kind": "annotation", "name": "Problems"})))
    assert all(row["time"].endswith("Z") for row in values(found["a"]))


WRONG: dict[str, tuple[dict[str, Any], int, str]] = {
    "another dashboard": ({"uid": "nobody"}, 404, "There is no dashboard nobody."),
    "another panel": ({"queries": [{"key": "a", "kind": "panel", "name": "1", "ref": "A"}]}, 404, "no panel 1"),
    "another kind": ({"queries": [{"key": "a", "kind": "sql", "name": "1"}]}, 400, "queries.0.kind"),
    "sql": ({"queries": [{"key": "a", "kind": "panel", "name": "1", "sql": "SELECT 1"}]}, 400, "queries.0.sql"),
    "no queries": ({"queries": []}, 400, "queries"),
    "too many queries": ({"queries": [{"key": "a", "kind": "variable", "name": "app"}] * 201}, 400, "queries"),
    "no time": ({"from": "now-6h"}, 400, "from"),
    "an endless time": ({"to": 10**18}, 400, "to"),
    "time backwards": ({"from": END_MS, "to": START_MS}, 400, "ends before it starts"),
    "a long value": ({"variables": {"app": "a" * 70000}}, 400, "variables.app"),
    "a number": ({"variables": {"app": 1}}, 400, "variables.app"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_request_is_refused_with_a_sentence(viewer: Served, what: str) -> None:
    changes, status, says = WRONG[what]
    answer = viewer.post("/api/query", body(panel_query("Traces")) | changes)
    assert answer.status_code == status
    assert says in answer.json()["error"]
    assert answer.json()["error"].endswith(".")


def test_other_requests_than_json_are_refused(viewer: Served) -> None:
    answer = requests.post(f"{viewer.url}/api/query", data=json.dumps(body(panel_query("Traces"))), timeout=60)
    assert answer.status_code == 415
    assert requests.post(f"{viewer.url}/api/query", data="{", headers=JSON, timeout=60).status_code == 400
    assert requests.post(f"{viewer.url}/api/dashboards", json={}, timeout=60).status_code == 405
    assert viewer.get("/api/nothing").json() == {"error": "There is no /api/nothing."}
    assert viewer.get("/explore").status_code == 404


JSON = {"Content-Type": "application/json"}


def test_problems_and_faults_are_told_the_newest_first(shown: Shown, tmp_path: Any) -> None:
    from datetime import UTC, datetime, timedelta

    from ragtide.drift.problems.group_store import GroupRow
    from tests.dashboards.sample_rows import event

    now = datetime.now(UTC)
    times = [now - timedelta(minutes=minutes) for minutes in (50, 40, 30, 90)]
    shown.database.insert(
        "problem_events",
        [
            event("live", "l1", "opened", 1, times[0], description="it fell"),
            event("live", "l2", "acked", 1, times[1], actor="kim"),
            event("live", "l3", "resolved", 1, times[1], description="it is well"),
            event("old", "o1", "opened", 1, times[3], description="long ago"),
            event("symptom", "s1", "opened", 1, times[0], description="it follows"),
        ],
    )
    shown.database.insert("problem_groups", [GroupRow("symptom", 1, "live", 1, 1)])
    timeline = tmp_path / "timeline.json"
    with serving(shown.database, timeline=timeline) as served:
        assert [one["kind"] for one in served.get("/api/activity").json()["events"]] == ["resolved", "opened"]
        fault = {"fault": "looping", "title": "it loops", "start": times[2].isoformat(), "end": None}
        timeline.write_text(json.dumps({"first_score_at": None, "faults": [fault]}))
        events = served.get("/api/activity").json()["events"]
        assert [(one["kind"], one["says"]) for one in events] == [
            ("fault on", "it loops"),
            ("resolved", "it is well"),
            ("opened", "it fell"),
        ]
        assert served.get("/api/dashboards").json()["demo"] is True
