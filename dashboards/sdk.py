"""The parts of Grafana's foundation SDK that our dashboards are made of, and ClickHouse queries as it wants them."""

import warnings
from dataclasses import dataclass
from typing import Literal

from ragtide.dashboards.data_source import PLUGIN

with warnings.catch_warnings():  # the SDK warns of its own successor, which Grafana 11 and 12 do not read
    warnings.simplefilter("ignore", DeprecationWarning)
    from grafana_foundation_sdk.builders import barchart, heatmap, stat, statetimeline, table, text, timeseries, xychart
    from grafana_foundation_sdk.builders import common as options
    from grafana_foundation_sdk.builders import dashboard as board
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.runtime import UnknownDataquery
    from grafana_foundation_sdk.models import common, dashboard
    from grafana_foundation_sdk.models import heatmap as heat
    from grafana_foundation_sdk.models import text as text_options
    from grafana_foundation_sdk.models import xychart as xy

__all__ = [
    "DATA_SOURCE",
    "JSONEncoder",
    "MetricQuery",
    "Query",
    "barchart",
    "board",
    "common",
    "dashboard",
    "heat",
    "heatmap",
    "options",
    "stat",
    "statetimeline",
    "steps",
    "table",
    "text",
    "text_options",
    "timeseries",
    "xy",
    "xychart",
]

DATA_SOURCE = common.DataSourceRef(type_val=PLUGIN, uid="${datasource}")

_FORMATS = {"timeseries": 0, "table": 1}  # as the plugin's own editor writes them


@dataclass(frozen=True, slots=True)
class Query:
    """A query of the ClickHouse plugin 4.x, as a builder for the SDK, which knows no plug-in's queries.

    A time series has a column `time`, ordered, and a number per series.
    """

    sql: str
    shape: Literal["timeseries", "table"] = "timeseries"
    ref: str = "A"

    def build(self) -> UnknownDataquery:
        """What the SDK puts into the panel."""
        return UnknownDataquery(
            {
                "refId": self.ref,
                "datasource": {"type": PLUGIN, "uid": "${datasource}"},
                "editorType": "sql",
                "queryType": self.shape,
                "format": _FORMATS[self.shape],
                "pluginVersion": "4.20.0",
                "rawSql": self.sql,
            }
        )


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """A range query of a Prometheus data source."""

    expression: str
    legend: str
    uid: str
    ref: str = "A"

    def build(self) -> UnknownDataquery:
        """Return what the SDK puts into the panel."""
        return UnknownDataquery(
            {
                "refId": self.ref,
                "datasource": {"type": "prometheus", "uid": self.uid},
                "editorMode": "code",
                "expr": self.expression,
                "legendFormat": self.legend,
                "range": True,
                "instant": False,
            }
        )


def steps(*colours: tuple[float | None, str]) -> board.ThresholdsConfig:
    """Colours from these values upwards; the first has None: from below."""
    found = [dashboard.Threshold(value=value, color=colour) for value, colour in colours]
    return board.ThresholdsConfig().mode(dashboard.ThresholdsMode.ABSOLUTE).steps(found)
