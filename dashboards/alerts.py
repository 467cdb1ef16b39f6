"""Alert rules that Grafana itself evaluates: they fire when ragtide cannot, because it stopped.

They query the data source of the dashboards, so nothing else has to run. Problems are rows, not alert rules.
"""

from ragtide.dashboards.build import Json, to_json
from ragtide.dashboards.dashboard_settings import DashboardSettings
from ragtide.dashboards.data_source import PLUGIN
from ragtide.dashboards.sql import Tables

_EVERY = "1m"
_OF_GRAFANA = "__expr__"  # the data source of what Grafana computes itself
_HEADER = "# Written by `ragtide dashboards alerts`, not by hand. JSON, which YAML includes.\n"


def alerts(
    *,
    database: str = "ragtide",
    silent_after_s: float = 120.0,
    unsent_after_s: float = 900.0,
    names: DashboardSettings | None = None,
) -> Json:
    """Rules for Grafana's file provisioning: the jobs' dead-man's switch, and messages that wait long in the outbox.

    The switch fires as well where no job ever ran, where Grafana gets no data, and where the database cannot be asked;
    the other rule leaves that to it.
    """
    tables, named = Tables(database), names or DashboardSettings()
    stopped = _rule(
        named,
        "jobs-stopped",
        "The jobs of ragtide stopped",
        _silence(tables),
        silent_after_s,
        summary="No ragtide jobs process does its work: windows are not closed and no problem is found.",
        description=f"The job watch succeeded last more than {silent_after_s:g} s ago, or ClickHouse cannot be "
        "asked. /ready of the jobs processes and their logs say why.",
        unknown="Alerting",
        severity="critical",
    )
    unsent = _rule(
        named,
        "outbox-waits",
        "Problems of ragtide are not announced",
        _oldest_unsent(tables),
        unsent_after_s,
        summary="Problems were found that have no annotation in Grafana yet.",
        description=f"The oldest message waits for more than {unsent_after_s:g} s (ragtide_outbox_oldest_seconds). "
        "Column why of table outbox and the log of the jobs say what Grafana answered.",
        unknown="OK",
        severity="warning",
    )
    # Such files name a folder by title alone: by that of the dashboards' there might come to be two.
    folder = f"{named.folder_title} alerts"
    name = named.uid_prefix.strip("-_") or "ragtide"
    group = {"orgId": 1, "name": name, "folder": folder, "interval": _EVERY, "rules": [stopped, unsent]}
    return {"apiVersion": 1, "groups": [group]}


def provisioning(document: Json) -> str:
    """The file for Grafana's `provisioning/alerting`: same rules, same bytes."""
    return _HEADER + to_json(document)


def _rule(
    names: DashboardSettings,
    name: str,
    title: str,
    sql: str,
    limit: float,
    *,
    summary: str,
    description: str,
    unknown: str,
    severity: str,
) -> Json:
    """A rule that fires if the query's only number is above `limit`; `unknown` is its state without a number."""
    return {
        "uid": names.uid(name),
        "title": title,
        "condition": "B",
        "data": [_query("A", sql, names.data_source_uid), _above("B", "A", limit)],
        "noDataState": unknown,
        "execErrState": unknown,
        "for": _EVERY,
        "labels": {"service": "ragtide", "severity": severity},
        "annotations": {"summary": summary, "description": description},
    }


def _silence(tables: Tables) -> str:
    """Seconds since the jobs last did their work, one row whatever there is; since 1970 where they never did."""
    return (
        "SELECT toFloat64(dateDiff('second', max(finished_at), now64(3))) AS silent_s "
        f"FROM {tables.name('job_runs')} WHERE job = 'watch'"
    )


def _oldest_unsent(tables: Tables) -> str:
    """Seconds for which the oldest message that is to go out has waited, one row whatever there is; 0: none waits."""
    return (
        "SELECT if(count() = 0, 0, toFloat64(dateDiff('second', min(written_at), now64(3)))) AS waits_s "
        f"FROM {tables.name('outbox')} FINAL WHERE state = 'pending'"
    )


def _query(ref: str, sql: str, source: str) -> Json:
    model = {
        "refId": ref,
        "datasource": {"type": PLUGIN, "uid": source},
        "editorType": "sql",
        "queryType": "table",
        "format": 1,
        "rawSql": sql,
    }
    return {
        "refId": ref,
        "datasourceUid": source,
        "relativeTimeRange": {"from": 600, "to": 0},
        "model": model,
    }


def _above(ref: str, of: str, limit: float) -> Json:
    model = {
        "refId": ref,
        "datasource": {"type": _OF_GRAFANA, "uid": _OF_GRAFANA},
        "type": "threshold",
        "expression": of,
        "conditions": [{"evaluator": {"type": "gt", "params": [limit]}}],
    }
    return {"refId": ref, "datasourceUid": _OF_GRAFANA, "relativeTimeRange": {"from": 0, "to": 0}, "model": model}
