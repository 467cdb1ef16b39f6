"""Owners: the SQL of the routes finds whom the settings name, and no pattern or name is SQL."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ragtide.dashboards.owners import NOBODY, owner_sql
from ragtide.drift.routes import Route, owner_of, route_of
from ragtide.drift.sql import text
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.macros import VARIABLE

ROUTES = (
    Route(app="docs-*", metric="operations.*", owner="platform"),
    Route(app="docs-*", owner="docs", labels={"channel": "#docs"}),
    Route(type="privacy", owner="legal"),
    Route(app="shop-?", owner="shop"),
)


@pytest.mark.parametrize(
    ("app", "metric", "type_", "owner"),
    [
        ("docs-bot", "operations.error", "latency", "platform"),
        ("docs-bot", "groundedness.groundedness", "privacy", "docs"),  # the first that matches
        ("other", "pii_leakage.passes", "privacy", "legal"),
        ("shop-1", "", "", "shop"),
        ("shop-12", "", "", ""),  # ? is one character
        ("my-docs-bot", "", "", ""),  # the whole name
        ("docs-bot", "", "", "docs"),
    ],
)
def test_the_first_route_that_matches_names_the_owner(app: str, metric: str, type_: str, owner: str) -> None:
    assert owner_of(ROUTES, app, metric, type_) == owner


def test_labels_are_those_of_the_same_route() -> None:
    found = route_of(ROUTES, "docs-bot")
    assert found is not None
    assert found.labels == {"channel": "#docs"}
    assert route_of(ROUTES, "nobody") is None


@pytest.mark.parametrize("wrong", [{"owner": ""}, {"owner": "a,b"}, {"owner": "x", "labels": {"9": "y"}}, {}])
def test_what_cannot_be_an_owner_or_a_label_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Route.model_validate(wrong)


NAMES = st.text(alphabet=st.sampled_from("ab.*?'\\$`{}[]()^|+-\n\t\x00é🦊% "), max_size=6)
OWNERS = st.sampled_from(["one", "two", "a team"])


@pytest.mark.clickhouse
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    routes=st.lists(st.builds(Route, app=NAMES, metric=st.one_of(st.just("*"), NAMES), owner=OWNERS), max_size=4),
    names=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=8),
)
def test_sql_and_python_agree_on_any_pattern_and_name(
    database: Database, routes: list[Route], names: list[tuple[str, str]]
) -> None:
    rows = ", ".join(f"({text(app)}, {text(metric)})" for app, metric in names)
    sql = owner_sql(routes, "pair.1", "pair.2")
    assert VARIABLE.findall(sql) == []
    found = database.rows(f"SELECT {sql} AS owner FROM (SELECT arrayJoin([{rows}]) AS pair)")
    assert [row["owner"] for row in found] == [owner_of(routes, *pair) or NOBODY for pair in names]


@pytest.mark.parametrize("hostile", ["'; DROP TABLE windows --", "$__fromTime", "${app}", "\\", "*/"])
def test_a_pattern_is_never_sql(hostile: str) -> None:
    assert hostile not in owner_sql((Route(app=hostile, owner="x"), Route(owner="y")), "app")
