"""The viewer expands SQL as Grafana and its plugin do: `tests.dashboards.macros` is the reference."""

from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.dashboards.build import build
from ragtide.dashboards.viewer.queries import ALL, Choice, Scope, UnknownMacro, expand, variables_of
from ragtide.evaluators.registry import load
from tests.dashboards import macros
from tests.dashboards.lint import queries
from tests.dashboards.test_hostile_names import HOSTILE

NAMES = ("app", "environment", "model_2")
TIMES = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # hypothesis adds the zone
VALUES = st.text() | st.sampled_from([*HOSTILE.values(), "$__timeFilter(x)", "${app:percentencode}", "$app", "", ALL])
CHOICES = VALUES | st.lists(VALUES, max_size=4)
COLUMNS = st.sampled_from(["start", "time", "w.start", "`a b`"])
WORDS = st.text("abz_ =,<>'\"\\{}%.[]\n", max_size=12).filter(lambda text: "[[" not in text)


@cache
def dashboards() -> dict[str, Any]:
    return build(load())


def balanced(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(parts, lambda inner: st.lists(inner, max_size=3).map(lambda some: f"({' '.join(some)})"))


SIMPLE = st.one_of(
    WORDS,
    COLUMNS.map(lambda column: f"$__timeFilter({column})"),
    COLUMNS.map(lambda column: f"$__timeInterval({column})"),
    st.sampled_from(["$__interval_s", "$__fromTime", "$__toTime"]),
    st.sampled_from(NAMES).map(lambda name: f"decodeURLComponent('${{{name}:percentencode}}')"),
)
CONDITIONALS = st.builds(
    lambda condition, name: f"$__conditionalAll({condition}, ${name})",
    balanced(SIMPLE.filter(lambda text: "," not in text)),
    st.sampled_from(NAMES),
)
STATEMENTS = st.lists(SIMPLE | CONDITIONALS, max_size=8).map(" ".join)


@given(
    sql=STATEMENTS,
    start=TIMES,
    end=TIMES,
    interval_s=st.integers(0, 10**7),
    chosen=st.fixed_dictionaries(dict.fromkeys(NAMES, CHOICES)),
)
def test_any_statement_of_the_subset_is_expanded_as_grafana_does(
    sql: str, start: datetime, end: datetime, interval_s: int, chosen: dict[str, Choice]
) -> None:
    reference: dict[str, macros.Choice] = {
        name: choice if isinstance(choice, str) else list(choice) for name, choice in chosen.items()
    }
    expected = macros.expanded(sql, start, end, interval_s, reference)
    assert expand(sql, Scope(start, end, interval_s, chosen)) == expected


@pytest.mark.parametrize("name", HOSTILE)
def test_every_query_of_every_dashboard_is_expanded_as_grafana_does(name: str) -> None:
    hostile = HOSTILE[name]
    for board in dashboards().values():
        names = [each["name"] for each in board["templating"]["list"]]
        for choice in (hostile, [hostile, "b"], [ALL], ALL):
            chosen = dict.fromkeys(names, choice)
            for where, sql in queries(board):
                start, end = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
                expected = macros.expanded(sql, start, end, 60, dict(chosen))
                assert expand(sql, Scope(start, end, 60, chosen)) == expected, where


@pytest.mark.parametrize(
    "sql",
    ["$app", "${app}", "${app:raw}", "[[app]]", "[[app:csv]]", "$__timeGroup(a, 5m)", "$__timeFilter(now(1))",
     "${unknown:percentencode}", "$__conditionalAll(a)", "$__conditionalAll(a, app)", "$__conditionalAll(a, $app",
     "$__adHocFilters('t')", "$__interval"]
)  # fmt: skip
def test_what_the_subset_does_not_have_is_refused(sql: str) -> None:
    scope = Scope(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC), 60, {"app": "a"})
    with pytest.raises(UnknownMacro):
        expand(f"SELECT {sql}", scope)


def test_the_variables_of_a_statement_are_found() -> None:
    condition = "$__conditionalAll(x IN (f('${a:percentencode}')), $a)"
    sql = f"SELECT '${{b:percentencode}}' WHERE {condition} AND '${{b:percentencode}}'"
    assert variables_of(sql) == ["b", "a"]
