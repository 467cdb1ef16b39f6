"""Aggregate scores to windows, as pure functions of the stored rows, and close them by watermark.

`Rollup` brings windows up to date. `MetricRef` describes a metric, `SegmentValues` the values that have windows of
their own.
"""

from ragtide.drift.windows.backoff import Application, FailureState, RollupBackoff
from ragtide.drift.windows.contents import OTHER_VALUES, base_contents
from ragtide.drift.windows.histogram import (
    FAR_BIN,
    HISTOGRAM_BINS,
    LOG_ORIGIN,
    LOG_STEP,
    BinBounds,
    bin_bounds,
    count_out_of_bounds,
    is_out_of_bounds,
    quantile,
)
from ragtide.drift.windows.metrics import MetricRef, metrics_by_name
from ragtide.drift.windows.moved_traces import tombstone_moved_traces
from ragtide.drift.windows.rollup import Rollup, RollupResult
from ragtide.drift.windows.scope import MINUTE_S, STREAMED_RUNS, WHOLE_MINUTES, WindowKey
from ragtide.drift.windows.segments import SegmentValues, load_segment_values, update_segment_values
from ragtide.drift.windows.traffic import apps_condition, live_windows, select_traffic, traffic_metrics
from ragtide.drift.windows.watermark import (
    FAST_LANE,
    Idleness,
    Watermark,
    closed_until,
    lane_watermarks,
    read_watermarks,
)
from ragtide.drift.windows.weighted_bins import (
    WeightedShare,
    sum_weights,
    weight_parts,
    weighted_bad_share,
    weighted_share,
)
from ragtide.drift.windows.window_metrics import segment_value_of

__all__ = [
    "FAR_BIN",
    "FAST_LANE",
    "HISTOGRAM_BINS",
    "LOG_ORIGIN",
    "LOG_STEP",
    "MINUTE_S",
    "OTHER_VALUES",
    "STREAMED_RUNS",
    "WHOLE_MINUTES",
    "Application",
    "BinBounds",
    "FailureState",
    "Idleness",
    "MetricRef",
    "Rollup",
    "RollupBackoff",
    "RollupResult",
    "SegmentValues",
    "Watermark",
    "WeightedShare",
    "WindowKey",
    "apps_condition",
    "base_contents",
    "bin_bounds",
    "closed_until",
    "count_out_of_bounds",
    "is_out_of_bounds",
    "lane_watermarks",
    "live_windows",
    "load_segment_values",
    "metrics_by_name",
    "quantile",
    "read_watermarks",
    "segment_value_of",
    "select_traffic",
    "sum_weights",
    "tombstone_moved_traces",
    "traffic_metrics",
    "update_segment_values",
    "weight_parts",
    "weighted_bad_share",
    "weighted_share",
]
