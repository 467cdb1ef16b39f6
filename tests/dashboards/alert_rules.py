"""Evaluates a rule as Grafana does: macros, one numeric column, labels of the other columns, and the threshold."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ragtide.dashboards.alerting.build import AlertingContext, alerting
from ragtide.dashboards.alerting.rule import Rule
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.macros import expanded

Json = dict[str, Any]
REGISTRY = load()


class Alert(NamedTuple):
    labels: dict[str, str]
    value: float


def rules(context: AlertingContext) -> dict[str, Rule]:
    return {rule.name: rule for group in alerting(REGISTRY, context).groups for rule in group.rules}


def rows(database: Database, rule: Rule, sql: str = "") -> Iterator[Alert]:
    """The rows of the rule's query, without labels that are empty, as Grafana sends them to its Alertmanager."""
    until = datetime.now(UTC) + timedelta(seconds=1)  # macros have whole seconds
    text = expanded(sql or rule.sql, until - timedelta(seconds=rule.lookback_s), until, 60, {})
    seen = []
    for row in database.rows(text):
        numbers = {name: value for name, value in row.items() if not isinstance(value, str)}
        [(_, value)] = numbers.items()
        assert isinstance(value, float)
        labels = {name: text for name, text in row.items() if name not in numbers}
        assert labels not in seen, "Grafana refuses two rows with the same labels"
        seen.append(labels)
        yield Alert({**rule.labels, **{name: text for name, text in labels.items() if text}}, value)


def firing(database: Database, rule: Rule) -> list[Alert]:
    return [one for one in rows(database, rule) if one.value > rule.limit]
