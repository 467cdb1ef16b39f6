"""An alert rule as Grafana evaluates it: SQL whose one numeric column is compared with a limit, row by row.

Every other column is a label, so each row is an alert of its own. Rules are documents of Grafana in three forms, which
`files` and `push` make of `Rule`.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ragtide.dashboards.data_source import PLUGIN

Json = dict[str, Any]
State = Literal["OK", "Alerting", "Error", "KeepLast", "NoData"]

VALUE, TEXTS, CONDITION = "A", "T", "B"  # refIds
_OF_GRAFANA = "__expr__"  # the data source of what Grafana computes itself
_LONGEST_UID, _LONGEST_TITLE = 40, 190
_DIGEST = 8
_UNITS = (("w", 604_800), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
_INTERVAL_MS = {"query": 60_000, "expression": 1_000}  # what Grafana adds itself; stated, a rule reads back as sent
_MAX_POINTS = 43_200


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that fires for each row whose number is above `limit` for `for_s` seconds.

    `name` is the end of its uid. `no_data` and `on_error` are the states without a row and without an answer. `texts`
    is a second query for annotations: its rows have the same labels and more of them, and `$values.T.Labels` holds
    those. `lookback_s` is the range of macros such as `$__timeFilter`.
    """

    name: str
    title: str
    sql: str
    limit: float
    annotations: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    no_data: State = "OK"
    on_error: State = "Error"
    for_s: int = 60
    texts: str = ""
    lookback_s: int = 600

    def data(self, source: str) -> list[Json]:
        """Return the queries and the condition, as every form of a rule has them."""
        queries = [_query(VALUE, self.sql, source, self.lookback_s)]
        if self.texts:
            queries.append(_query(TEXTS, self.texts, source, self.lookback_s))
        return [*queries, _above(CONDITION, VALUE, self.limit)]


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that Grafana evaluates one after the other, at one interval."""

    name: str
    rules: tuple[Rule, ...]


def uid_of(prefix: str, name: str) -> str:
    """Return a uid of at most 40 letters, digits, `-` and `_`; a name that is no such uid ends in a digest."""
    whole = f"{prefix}{name}"
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", whole)
    return whole if plain == whole and len(whole) <= _LONGEST_UID else _with_digest(plain, whole, _LONGEST_UID)


def title_of(title: str) -> str:
    """Return a title on one line, of at most 190 characters; a longer one ends in a digest."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in title).split())
    return line if len(line) <= _LONGEST_TITLE else _with_digest(line, title, _LONGEST_TITLE)


def _with_digest(shown: str, whole: str, longest: int) -> str:
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGEST]
    return f"{shown[: longest - _DIGEST - 1]}-{digest}"


def duration(seconds: int) -> str:
    """Write seconds as Prometheus does, e.g. 1m30s: Grafana returns durations in this form."""
    parts = []
    for unit, size in _UNITS:
        if unit == "w" and seconds % size:
            continue  # only whole weeks
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


def _query(ref: str, sql: str, source: str, lookback_s: int) -> Json:
    model = {
        "refId": ref,
        "datasource": {"type": PLUGIN, "uid": source},
        "editorType": "sql",
        "queryType": "table",
        "format": 1,
        "rawSql": sql,
        "intervalMs": _INTERVAL_MS["query"],
        "maxDataPoints": _MAX_POINTS,
    }
    return {
        "refId": ref,
        "queryType": "",
        "datasourceUid": source,
        "relativeTimeRange": {"from": lookback_s, "to": 0},
        "model": model,
    }


def _above(ref: str, of: str, limit: float) -> Json:
    condition = {
        "type": "query",
        "evaluator": {"type": "gt", "params": [limit]},
        "operator": {"type": "and"},
        "query": {"params": []},
        "reducer": {"type": "last", "params": []},
    }
    model = {
        "refId": ref,
        "datasource": {"type": _OF_GRAFANA, "uid": _OF_GRAFANA},
        "type": "threshold",
        "expression": of,
        "conditions": [condition],
        "intervalMs": _INTERVAL_MS["expression"],
        "maxDataPoints": _MAX_POINTS,
    }
    return {
        "refId": ref,
        "queryType": "",
        "datasourceUid": _OF_GRAFANA,
        "relativeTimeRange": {"from": 0, "to": 0},
        "model": model,
    }
