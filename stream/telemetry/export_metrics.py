"""Metrics of scores that go to other tools."""

from collections.abc import Callable

from prometheus_client import Counter, Gauge


class ExportMetrics:
    """Part of `Telemetry`, which makes the metrics."""

    def __init__(self, counter: Callable[..., Counter], gauge: Callable[..., Gauge]) -> None:
        self.events = counter(
            "exported_scores",
            "Scores for a target of otel.export by outcome: `sent`, some perhaps twice; `rejected` by the target in a "
            "batch that it took; `unknown`, in a batch that it took with an answer that cannot be read, or that leaves "
            "open which spans it rejects; `refused` by it alone; `too_old`; `superseded` by a newer version or "
            "deleted; `no_trace_id`, of traces without an id of OpenTelemetry. Those other than `sent` are not sent "
            "again. Targets are http and topic:NAME.",
            "`rejected`, `refused`, `unknown`: the log has the reason. `too_old`: the target was away for longer than "
            "otel.export.max_age_s.",
            "target",
            "outcome",
        )
        self.lag_seconds = gauge(
            "export_lag_seconds",
            "Age in seconds of the newest score up to which all were sent. A minute is usual: scores are read once "
            "every insert of their time is visible.",
            "Growing: the target is away (check the log), or otel.export.max_events_s is too low.",
            "target",
        )
