"""Links to traces open what they name, whatever signs an id has."""

from urllib.parse import parse_qs, quote, urlsplit

import pytest
from pydantic import ValidationError

from ragtide.dashboards.trace_links import filled_template_sql, trace_link, trace_link_sql
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import TRACE_FIELDS, GrafanaSettings
from tests.dashboards.macros import VARIABLE

HOSTILE = "it's \\ a/b?c#d\" {app} &x=1 ${__from} $__fromTime [[a]] ü"


def test_the_named_page_gets_the_id_and_nothing_of_it_leads_elsewhere() -> None:
    settings = GrafanaSettings(trace_url="https://t.example/{app}/{trace_id}?view=1", url="https://g.example")
    assert trace_link("t1", "docs bot", settings) == "https://t.example/docs%20bot/t1?view=1"
    assert trace_link("../a?b", "x", settings) == "https://t.example/x/..%2Fa%3Fb?view=1"
    assert trace_link("t1", "x", GrafanaSettings()) == ""


def test_without_such_a_page_the_link_opens_the_dashboard_of_the_trace() -> None:
    settings = GrafanaSettings(url="https://g.example/behind/", org_id=3)
    link = urlsplit(trace_link(HOSTILE, "docs bot", settings, "team-"))
    assert (link.netloc, link.path, link.fragment) == ("g.example", "/behind/d/team-trace", "")
    assert parse_qs(link.query, strict_parsing=True) == {
        "orgId": ["3"], "var-app": ["docs bot"], "var-run": ["live"], "var-trace_id": [HOSTILE],
    }  # fmt: skip


@pytest.mark.clickhouse
@pytest.mark.parametrize("trace_url", ["", "https://t.example/{app}/{trace_id}?view=1"])
def test_tables_have_the_same_link(database: Database, trace_url: str) -> None:
    for trace_id in (HOSTILE, "t1", ""):
        sql = (
            f"SELECT {trace_link_sql('app', 'id', trace_url)} AS link FROM (SELECT {{a:String}} AS app, "
            f"{{i:String}} AS id)"
        )
        sql = sql.replace("$__fromTime", "toDateTime(1000)").replace("$__toTime", "toDateTime(2000)")
        assert VARIABLE.findall(sql.replace("{a:String}", "").replace("{i:String}", "")) == []
        [row] = database.rows(sql, {"a": "docs bot", "i": trace_id})
        expected = trace_link(trace_id, "docs bot", GrafanaSettings(url="https://g.example", trace_url=trace_url))
        expected = expected.removeprefix("https://g.example").replace("orgId=1&", "") if trace_id else ""
        kept = "&from=1000000&to=2000000" if trace_id and not trace_url else ""
        assert row["link"] == expected + kept


@pytest.mark.clickhouse
def test_templates_fill_in_every_field_encoded(database: Database) -> None:
    template = 'https://x.example/{trace_id}/{app}?e={environment}&r={run}&s={session_id}&t={time_ms}&q={"a":1}'
    fields = dict.fromkeys(TRACE_FIELDS, "value")
    [row] = database.rows(
        f"SELECT {filled_template_sql(template, fields)} AS link FROM (SELECT {{v:String}} AS value)", {"v": HOSTILE}
    )
    encoded = quote(HOSTILE, safe="-_.~")
    for name in TRACE_FIELDS:
        template = template.replace(f"{{{name}}}", encoded)
    assert row["link"] == template


@pytest.mark.parametrize("url", ["traces.example/{trace_id}", "https://t.example/", "javascript:alert({trace_id})"])
def test_a_page_that_names_no_trace_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="trace_id"):
        GrafanaSettings(trace_url=url)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("https://x.example/", "trace_id"),
        ("//x.example/{trace_id}", "a path"),
        ("javascript:{trace_id}", "http://"),
        ("https://x.example/{trace_id}/{tenant}", r"no such field \{tenant\}; valid: \{trace_id\}"),
    ],
)
def test_a_template_that_would_not_work_is_refused(url: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        GrafanaSettings(trace_links={"Tool": url})
