"""Watch every series of windows for changes from its own baseline, and report them as problems.

`Scanner` reads closed windows, learns baselines once a day and runs the detectors. `ChangePointReporter` and
`DailyDriftReporter` turn its `ScanResult` into problems. `pinning` fixes a baseline to an interval or to a run.
"""

from ragtide.drift.anomalies import pinning
from ragtide.drift.anomalies.baseline_view import (
    BaselineView,
    ChannelView,
    baseline_views,
    channel_views,
    describe_source,
)
from ragtide.drift.anomalies.batch import BatchSnapshot
from ragtide.drift.anomalies.change_points import ChangePointReporter, change_kind
from ragtide.drift.anomalies.daily_drift import DAILY_DRIFT, DailyDriftReporter, DailyDriftTest
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.pinning import PinCoverage
from ragtide.drift.anomalies.references import (
    BaselinePin,
    ReferenceOverrides,
    load_overrides,
    load_pins,
    problem_intervals,
)
from ragtide.drift.anomalies.scanner import Progress, ScanContext, Scanner, ScanResult, live_context
from ragtide.drift.anomalies.state_store import InMemoryStateStore

__all__ = [
    "DAILY_DRIFT",
    "BaselinePin",
    "BaselineView",
    "BatchSnapshot",
    "ChangePointReporter",
    "ChannelView",
    "DailyDriftReporter",
    "DailyDriftTest",
    "InMemoryStateStore",
    "PinCoverage",
    "Progress",
    "ReferenceOverrides",
    "ScanContext",
    "ScanResult",
    "Scanner",
    "baseline_views",
    "change_kind",
    "channel_views",
    "describe_source",
    "live_context",
    "load_overrides",
    "load_pins",
    "monitored_metrics",
    "pinning",
    "problem_intervals",
]
