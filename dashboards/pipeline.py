"""The dashboard of the pipeline's health: from ragtide's tables, and from /metrics where there is a Prometheus."""

from collections.abc import Iterator, Mapping

from ragtide.dashboards.columns import color_above, widths
from ragtide.dashboards.layout import frame
from ragtide.dashboards.panels import color_cells, lines, number, rows, section, stacked_bars, wrap_cells
from ragtide.dashboards.pipeline_metrics import metric_panels
from ragtide.dashboards.pipeline_sql import PipelineQueries
from ragtide.dashboards.sdk import dashboard, stat, steps, table, timeseries
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.variables import variables
from ragtide.evaluators.spec import Evaluator

NAME = "pipeline"
_OKAY = steps((None, "green"))


def pipeline(
    registry: Mapping[str, Evaluator],
    tables: Tables,
    prometheus_uid: str = "",
    heartbeat_timeout_s: float = 30.0,
    live_after_s: float = 120.0,
) -> dashboard.Dashboard:
    """Build the dashboard; panels of /metrics are in it only with the uid of a Prometheus data source."""
    ask = PipelineQueries(tables, registry, heartbeat_timeout_s)
    says = "Workers, jobs and storage of ragtide itself: lag, throughput, failures, dead letters, tables."
    view = frame(NAME, "Pipeline health", says).time("now-6h", "now").refresh("1m").with_variable(variables(tables)[0])
    view = view.with_row(section("Now"))
    for panel in _now(ask, heartbeat_timeout_s, live_after_s):
        view = view.with_panel(panel)
    view = view.with_row(section("Lag and throughput"))
    for lag_panel in _lag(ask):
        view = view.with_panel(lag_panel)
    view = view.with_row(section("Failures and dead letters"))
    for failure_panel in _failures(ask):
        view = view.with_panel(failure_panel)
    view = view.with_row(section("Jobs and storage"))
    for job_panel in _jobs(ask):
        view = view.with_panel(job_panel)
    if prometheus_uid:
        view = view.with_row(section("From /metrics: memory, GPUs, Kafka and ClickHouse clients"))
        for metric_panel in metric_panels(prometheus_uid):
            view = view.with_panel(metric_panel)
    return view.build()


def _now(ask: PipelineQueries, heartbeat_timeout_s: float, live_after_s: float) -> Iterator[stat.Panel]:
    says = "Seconds since the job that closes windows and finds problems last succeeded. No data: it never ran."
    yield number("Jobs last worked", says, ask.jobs_silent_s(), "s").thresholds(
        steps((None, "green"), (live_after_s / 2, "orange"), (live_after_s, "red"))
    )
    says = "Age of the newest processed record in the partition that is furthest behind, 0 if nothing waits. "
    yield number("Furthest behind", f"{says}{_NO_WORKER}", ask.behind_s(), "s").thresholds(
        steps((None, "green"), (60, "orange"), (600, "red"))
    )
    says = f"Records that wait in Kafka, over all lanes and partitions. {_NO_WORKER}"
    yield number("Records waiting", says, ask.waiting(), "short").thresholds(_OKAY)
    says = f"Partitions without a heartbeat for {heartbeat_timeout_s:g} s: they hold windows back. {_NO_WORKER}"
    yield number("Without heartbeat", says, ask.silent(), "short").thresholds(steps((None, "green"), (1, "red")))
    says = "Dead letters of the time range that nobody has replayed or dropped. 0 if there is none."
    yield number("Dead letters", says, ask.open_letters(), "short").thresholds(steps((None, "green"), (1, "orange")))
    says = "How long the oldest message to Grafana has waited. 0 if none waits."
    yield number("Oldest message", says, ask.oldest_message_s(), "s").thresholds(
        steps((None, "green"), (300, "orange"), (900, "red"))
    )


_NO_WORKER = "No data: no worker has reported within a day."


def _lag(ask: PipelineQueries) -> Iterator[table.Panel | timeseries.Panel]:
    says = (
        "What waits for each lane in each topic, now: records, seconds behind, partitions whose worker is silent, the "
        "oldest heartbeat, and how far the watermark is behind the clock. Windows close at the watermark. "
        f"{_NO_WORKER}"
    )
    seconds = dict.fromkeys(("behind", "heartbeat", "watermark"), "s")
    lanes = rows("Lanes", says, ask.lanes(), 14, seconds, height=6).no_value("no worker has reported")
    yield widths(color_above(lanes, "silent", 1), dict.fromkeys(("lane", "partitions", "waiting", "silent"), 90))
    says = (
        "Windows that wait for their roll-up, now. Closable ones lie before the watermarks: more than a few mean that "
        "jobs are behind. Oldest: since when the first of them has waited. No data: none waits."
    )
    waiting = rows("Windows behind", says, ask.windows_behind(), 10, {"oldest": "s"}, height=6)
    yield waiting.no_value("none waits")
    says = (
        "From the end of a window to its close, the slowest of each point: the lag of a lane over time. The "
        "out-of-orderness (30 s by default) and the interval of jobs are part of it. No data: no window of the time "
        "range is closed."
    )
    yield (
        lines("Time to close a window", says, [ask.close_delay()], "s")
        .display_name("${__field.labels.lane}")
        .no_value("no data")
    )
    says = (
        "From the event time that the application sent to the row in ClickHouse. It includes the application's own "
        "delay, waiting in Kafka, and differences between clocks. Traces that labels sent again are left out; a "
        "trace that the application sends again counts from its first event time. Series traces: how many it rests "
        "on. No data: no traces."
    )
    yield _on_the_right(lines("Insert lag", says, [ask.insert_lag()], "s"), "traces").no_value("no data")
    says = "Evaluations per minute of event time by lane, scored and failed ones. No data: no closed window."
    yield (
        lines("Evaluations per minute", says, [ask.throughput()], "short")
        .display_name("${__field.labels.lane}")
        .no_value("no data")
    )
    says = "Traces per minute of event time by application. No data: no closed window."
    yield (
        lines("Traces per minute", says, [ask.traffic()], "short")
        .display_name("${__field.labels.app}")
        .no_value("no data")
    )
    says = f"Every partition as its worker last reported it, those without a heartbeat first. {_NO_WORKER}"
    partitions = rows("Partitions", says, ask.partitions(), 24, {"behind": "s", "heartbeat": "s"}, height=7)
    yield color_cells(partitions, "state", {"no heartbeat": "red", "alive": "green"}).no_value("no worker has reported")


def _failures(ask: PipelineQueries) -> Iterator[table.Panel | timeseries.Panel]:
    says = "Evaluations without a result because the evaluator failed, by kind. No data: none failed."
    yield (
        stacked_bars("Evaluator failures", says, ask.failures(), "short", 10)
        .display_name("${__field.labels.reason}")
        .no_value("none failed")
    )
    says = (
        "The same by evaluator, with the share of its evaluations. Table scores has the traces. No data: none failed."
    )
    yield rows("Failures by evaluator", says, ask.failures_by_evaluator(), 14, {"share": "percentunit"}).no_value(
        "none failed"
    )
    says = "Records that could not be used, by reason, at the time they were set aside. No data: none."
    yield (
        stacked_bars("Dead letters by reason", says, ask.letters_by_reason(), "short", 10)
        .display_name("${__field.labels.why}")
        .no_value("none")
    )
    says = "The same by topic and stage, and what operators have done. `ragtide dead-letters` shows and replays them. "
    letters = rows("Dead letters in detail", f"{says}No data: none.", ask.letters(), 14).no_value("none")
    yield wrap_cells(color_above(letters, "open", 1, "orange"), "newest detail", 260)


def _jobs(ask: PipelineQueries) -> Iterator[table.Panel | timeseries.Panel | stat.Panel]:
    says = (
        "Scheduled jobs, those with failures first: time since the last success, and runs of the time range. No "
        "data: no `ragtide jobs` process has ever led."
    )
    seconds = dict.fromkeys(("last success", "median duration", "95th percentile"), "s")
    jobs = rows("Jobs", says, ask.jobs(), 14, seconds, height=9).no_value("no job ever ran")
    yield wrap_cells(color_above(jobs, "failed", 1), "last error", 260)
    says = "Longest run of each job. Above its interval the job falls behind. No data: no run in the time range."
    durations = lines("Duration of jobs", says, [ask.job_durations()], "s", 10)
    yield durations.height(9).display_name("${__field.labels.job}").no_value("no data")
    says = (
        "The newest elections of a leader among `ragtide jobs` processes. Many short terms: processes restart or "
        "stall. "
    )
    leaders = rows("Leaders of the jobs", f"{says}No data: none was elected.", ask.leaders(), 10, {"led": "s"})
    yield leaders.no_value("none was elected")
    says = "Rows and bytes of ragtide's tables now, as far as the user of the data source may see them. No data: none."
    sizes = rows("Tables", says, ask.tables_by_size(), 10, {"bytes": "bytes", "per row": "bytes", "rows": "short"})
    yield sizes.no_value("no table is visible")
    says = "Used share of ClickHouse's default disk. Other disks: table system.disks. No data: it could not be read."
    yield (
        number("Disk used", says, ask.disk(), "percentunit")
        .height(8)
        .thresholds(steps((None, "green"), (0.75, "orange"), (0.85, "red")))
    )


def _on_the_right(panel: timeseries.Panel, series: str) -> timeseries.Panel:
    """Draw a series of counts as bars on an axis of its own."""
    style = [
        ("custom.drawStyle", "bars"),
        ("custom.fillOpacity", 20),
        ("custom.lineWidth", 0),
        ("custom.axisPlacement", "right"),
        ("custom.axisLabel", series),
        ("unit", "short"),
        ("color", {"mode": "fixed", "fixedColor": "text"}),
    ]
    return panel.override_by_name(series, [dashboard.DynamicConfigValue(id_val=k, value=v) for k, v in style])
