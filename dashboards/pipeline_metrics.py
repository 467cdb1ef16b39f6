"""Panels of /metrics, by PromQL: what tables do not hold, such as memory, GPUs and the clients of Kafka and ClickHouse.

A test holds every name here to the registry of `ragtide.stream.telemetry`. The built-in viewer draws none of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ragtide.dashboards.panels import lines
from ragtide.dashboards.sdk import MetricQuery, common, timeseries


class _Panel(NamedTuple):
    title: str
    says: str
    unit: str
    queries: tuple[tuple[str, str], ...]  # PromQL and legend


_RATE = "[$__rate_interval]"
_OURS = "and on (job, instance) ragtide_log_lines_counted"  # of processes that are ragtide's
PANELS = (
    _Panel(
        "Lag in records",
        "Records that wait, by lane.",
        "short",
        (("sum by (lane) (ragtide_lag_records)", "{{lane}}"),),
    ),
    _Panel(
        "Lag in seconds",
        "Age of the newest processed record of the partition that is furthest behind, by lane.",
        "s",
        (("max by (lane) (ragtide_lag_seconds)", "{{lane}}"),),
    ),
    _Panel(
        "Records per second",
        "Records processed, by lane.",
        "short",
        ((f"sum by (lane) (rate(ragtide_records_total{_RATE}))", "{{lane}}"),),
    ),
    _Panel(
        "Failed evaluations per second",
        "Evaluations that failed, by evaluator.",
        "short",
        ((f'sum by (evaluator) (rate(ragtide_outcomes_total{{status="failed"}}{_RATE}))', "{{evaluator}}"),),
    ),
    _Panel(
        "Time per slice, 95th percentile",
        "Seconds to decode and evaluate one slice of records, by lane.",
        "s",
        (
            (
                f"histogram_quantile(0.95, sum by (le, lane) (rate(ragtide_process_seconds_bucket{_RATE})))",
                "{{lane}}",
            ),
        ),
    ),
    _Panel(
        "Storing",
        "Seconds to store one block (95th percentile), and seconds since ClickHouse last took rows "
        "while it takes none.",
        "s",
        (
            (f"histogram_quantile(0.95, sum by (le) (rate(ragtide_write_seconds_bucket{_RATE})))", "store a block"),
            ("max(ragtide_sink_blocked_seconds)", "blocked"),
        ),
    ),
    _Panel(
        "Bytes in flight",
        "Records fetched and not yet stored, by lane. At worker.in_flight_bytes fetching pauses.",
        "bytes",
        (("sum by (lane) (ragtide_in_flight_bytes)", "{{lane}}"),),
    ),
    _Panel(
        "Fetching paused",
        "Share of time in which fetching was paused, by lane.",
        "percentunit",
        ((f"max by (lane) (rate(ragtide_fetch_paused_seconds_total{_RATE}))", "{{lane}}"),),
    ),
    _Panel(
        "Memory of processes",
        "Resident memory of each process of ragtide.",
        "bytes",
        ((f"process_resident_memory_bytes {_OURS}", "{{instance}}"),),
    ),
    _Panel(
        "CPU of processes",
        "Cores that each process of ragtide uses.",
        "short",
        ((f"rate(process_cpu_seconds_total{_RATE}) {_OURS}", "{{instance}}"),),
    ),
    _Panel(
        "GPU memory",
        "GPU memory that models, their work and caches use, and its limit, by lane and GPU.",
        "bytes",
        (
            ("sum by (lane, card) (ragtide_card_bytes)", "{{lane}} {{card}}"),
            ("sum by (lane, card) (ragtide_card_limit_bytes)", "limit of {{lane}} {{card}}"),
        ),
    ),
    _Panel(
        "Caches",
        "Bytes of model outputs cached between batches, and their limit, by lane and cache.",
        "bytes",
        (
            ("sum by (lane, cache) (ragtide_cache_bytes)", "{{lane}} {{cache}}"),
            ("sum by (lane, cache) (ragtide_cache_limit_bytes)", "limit of {{lane}} {{cache}}"),
        ),
    ),
    _Panel(
        "Dead letters per second",
        "Records sent to the dead-letter topic, by reason.",
        "short",
        ((f"sum by (reason) (rate(ragtide_dead_letters_total{_RATE}))", "{{reason}}"),),
    ),
    _Panel(
        "Jobs and messages",
        "Processes that lead the jobs (1 is right), and messages that wait for Grafana.",
        "short",
        (
            ("sum(ragtide_jobs_leader)", "leaders"),
            ("sum(max by (target) (ragtide_outbox_waiting))", "messages waiting"),
        ),
    ),
)


def metric_panels(uid: str) -> Iterator[timeseries.Panel]:
    """Yield the panels; `uid` is that of the Prometheus data source."""
    source = common.DataSourceRef(type_val="prometheus", uid=uid)
    for one in PANELS:
        says = f"{one.says} No data: nothing scrapes /metrics of that process."
        panel = lines(one.title, says, [], one.unit, 8).datasource(source).no_value("no data")
        for ref, (expression, legend) in zip("ABCD", one.queries, strict=False):
            panel = panel.with_target(MetricQuery(expression, legend, uid, ref))
        yield panel
