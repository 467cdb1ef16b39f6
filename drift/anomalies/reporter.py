"""Build the detection of a changed series: attributes, severity and example traces."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ragtide.drift.anomalies.change_messages import Change
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.leadership import Term
from ragtide.drift.problems import Detection, Kind, ProblemKey, build_details, evidence
from ragtide.drift.rules import RecordQuery, Series, record_query
from ragtide.drift.settings import RuleSettings, Severity
from ragtide.drift.windows import SegmentValues
from ragtide.sinks.clickhouse.database import Database

_MAX_EXAMPLES = 10
_LABEL_ROWS = """
    scores FINAL WHERE run_id = 'live' AND app = {app:String} AND environment = {environment:String}
        AND evaluator = {evaluator:String} AND status = 'scored' AND model = {model:String}
        AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}
        AND categories[{key:String}] = {label:String}"""


@dataclass(frozen=True, slots=True)
class AnomalyReporter:
    """Reports changes of monitored series for one leader's term."""

    database: Database
    rules: RuleSettings
    monitored: Mapping[str, MonitoredMetric]
    segments: SegmentValues
    term: Term

    def key_of(self, series: Series) -> ProblemKey:
        """Return the key of a series' problem."""
        return ProblemKey(aspect=self.monitored[series.metric].aspect, **series._asdict())

    def build(
        self,
        kind: Kind,
        series: Series,
        change: Change,
        records: int,
        interval: tuple[datetime, datetime],
        message: str,
        attributes: Mapping[str, object],
        rule_id: str,
    ) -> Detection:
        """Build the detection of a change of so many records, with `attributes` besides those of every change."""
        metric, key = self.monitored[series.metric], self.key_of(series)
        details = build_details(
            kind,
            key,
            metric.ref,
            message,
            {
                "evaluator": metric.evaluator.id,
                "value": change.value,
                "baseline": change.baseline,
                "effect_size": change.effect_size,
                "sample_size": records,
                **attributes,
            },
            self.rules,
            severity=self._severity(series, change, records, interval),
            examples=self._examples(metric, series, change, *interval),
            rule_id=rule_id,
        )
        return Detection(key, details, *interval)

    def _severity(self, series: Series, change: Change, records: int, interval: tuple[datetime, datetime]) -> Severity:
        """Rate a regression by the share of the app's traces that it moved; an improvement is info."""
        if not change.is_regression:
            return "info"
        rules = self.rules.of(series.app)
        share = change.total_variation * min(records / max(evidence.traffic(self.database, series, *interval), 1), 1.0)
        if share >= rules.severity_critical:
            return "critical"
        return "warning" if share >= rules.severity_warning else "info"

    def _examples(
        self, metric: MonitoredMetric, series: Series, change: Change, since: datetime, until: datetime
    ) -> tuple[str, ...]:
        """Return ids of ten traces at most, worst first; of a label the latest. No text of theirs is read."""
        evaluator, _, key = series.metric.partition(".")
        if change.examples_order == "label":
            asked = {"app": series.app, "environment": series.environment, "model": series.model, "key": key}
            asked |= {"evaluator": evaluator, "label": change.channel}
            records, worst_first = RecordQuery(_LABEL_ROWS, {**asked, "since": since, "until": until}), ""
        else:
            records = record_query(series, self.segments, int(since.timestamp()), math.ceil(until.timestamp()))
            value = "metrics[{key:String}]"
            orders = {"low": value, "high": f"-{value}", "far": f"-abs({value} - {{line:Float64}})"}
            worst_first = f"{orders[change.examples_order]}, "
        rows = self.database.rows(
            f"SELECT trace_id FROM {records.rows} ORDER BY {worst_first}time DESC, trace_id LIMIT {_MAX_EXAMPLES}",
            {**records.parameters, "line": change.line},
        )
        return tuple(row["trace_id"] for row in rows)
