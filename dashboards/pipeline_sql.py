"""SQL of the pipeline's own health, from ragtide's tables alone: lag, throughput, failures, jobs, storage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.sql import TOTAL, TRAFFIC, Tables, among
from ragtide.drift.sql import array, text
from ragtide.evaluators.spec import Evaluator

_EXPIRED_DAYS = 1  # as windows.partition_expiry_s by default: partitions without a heartbeat for longer are ignored
_KNOWN = f"heartbeat_at >= subtractDays($__toTime, {_EXPIRED_DAYS})"
_LIVE = "run_id = 'live'"
_AGE = "dateDiff('millisecond', {}, now64(3)) / 1000".format
# Zero where nothing waits: then the newest record may be as old as it likes.
_BEHIND = f"if(lag = 0 OR toUnixTimestamp(newest) <= 0, 0, greatest({_AGE('newest')}, 0))"
_REVISION = "bitAnd(bitShiftRight(version, 16), 65535)"  # of `ragtide.sinks.version`: labels that the trace carries


@dataclass(frozen=True, slots=True)
class PipelineQueries:
    """Queries about workers, jobs and storage. What is not kept over time is shown as it is now."""

    tables: Tables
    registry: Mapping[str, Evaluator]
    heartbeat_timeout_s: float = 30.0

    def waiting(self) -> str:
        """Return the number of records that wait in all partitions."""
        return f"SELECT sum(lag) AS records FROM {self._name('progress')} FINAL WHERE {_KNOWN} HAVING count() > 0"

    def behind_s(self) -> str:
        """Return the age of the newest processed record of the partition that is furthest behind."""
        return f"SELECT max({_BEHIND}) AS seconds FROM {self._name('progress')} FINAL WHERE {_KNOWN} HAVING count() > 0"

    def silent(self) -> str:
        """Return the number of partitions without a recent heartbeat."""
        return (
            f"SELECT countIf({self._silent()}) AS partitions FROM {self._name('progress')} FINAL WHERE {_KNOWN} "
            "HAVING count() > 0"
        )

    def jobs_silent_s(self) -> str:
        """Return the seconds since the job that closes windows last succeeded."""
        return (
            f"SELECT {_AGE('max(finished_at)')} AS seconds FROM {self._name('job_runs')} FINAL "
            "WHERE job = 'watch' AND toDateTime(0) <= $__toTime HAVING count() > 0"
        )

    def oldest_message_s(self) -> str:
        """Return the seconds for which the oldest unsent message has waited; 0 if none waits."""
        return (
            f"SELECT if(count() = 0, 0, {_AGE('min(written_at)')}) AS seconds FROM {self._name('outbox')} FINAL "
            "WHERE state = 'pending' AND written_at <= $__toTime"
        )

    def open_letters(self) -> str:
        """Return the number of dead letters of the range that nobody has replayed or dropped."""
        return f"SELECT countIf(mark = '') AS letters FROM ({self._letters()})"

    def lanes(self) -> str:
        """Return a row per lane and topic: partitions, what waits, seconds behind, heartbeat and watermark."""
        progress = (
            f"SELECT lane, topic, count() AS partitions, countIf({self._silent()}) AS silent, sum(lag) AS waiting, "
            f"max({_BEHIND}) AS behind, max({_AGE('heartbeat_at')}) AS heartbeat "
            f"FROM {self._name('progress')} FINAL WHERE {_KNOWN} GROUP BY lane, topic"
        )
        marks = f"SELECT lane, topic, max(watermark) AS watermark FROM {self._name('watermarks')} GROUP BY lane, topic"
        return (
            "SELECT p.lane AS lane, p.topic AS topic, p.partitions AS partitions, p.waiting AS waiting, "
            "p.behind AS behind, p.silent AS silent, p.heartbeat AS heartbeat, "
            f"if(toUnixTimestamp(w.watermark) <= 0, NULL, {_AGE('w.watermark')}) AS watermark "
            f"FROM ({progress}) AS p LEFT JOIN ({marks}) AS w ON p.lane = w.lane AND p.topic = w.topic "
            "ORDER BY lane, topic LIMIT 200"
        )

    def partitions(self) -> str:
        """Return a row per partition, those without a heartbeat first, then by seconds behind."""
        return (
            f"SELECT if({self._silent()}, 'no heartbeat', 'alive') AS state, lane, topic, partition, worker, "
            f"lag AS waiting, {_BEHIND} AS behind, {_AGE('heartbeat_at')} AS heartbeat, offset "
            f"FROM {self._name('progress')} FINAL WHERE {_KNOWN} "
            "ORDER BY state = 'alive', behind DESC, lane, topic, partition LIMIT 500"
        )

    def close_delay(self) -> str:
        """Return a time series per lane: seconds from the end of a window to its close, the slowest of each point."""
        delay = "dateDiff('millisecond', toDateTime64(start, 3, 'UTC') + toIntervalSecond(size_s), closed_at) / 1000"
        return (
            f"SELECT $__timeInterval(start) AS time, {self._lane()} AS lane, max({delay}) AS delay {self._windows()} "
            "GROUP BY time, lane ORDER BY time, lane"
        )

    def throughput(self) -> str:
        """Return a time series per lane: evaluations per minute, of event time."""
        return (
            f"SELECT $__timeInterval(start) AS time, {self._lane()} AS lane, "
            f"sum(scored + failed) * 60 / greatest($__interval_s, {self._base()}) AS evaluations {self._windows()} "
            "GROUP BY time, lane ORDER BY time, lane"
        )

    def traffic(self) -> str:
        """Return a time series per application: traces per minute, of event time."""
        counts = (
            "SELECT start, app, environment, model, prompt_version, max(seen) AS seen_n "
            f"{self._windows([TRAFFIC])} GROUP BY start, app, environment, model, prompt_version"
        )
        rate = f"sum(seen_n) * 60 / greatest($__interval_s, {self._base()})"
        return (
            f"SELECT $__timeInterval(start) AS time, app, {rate} AS traces FROM ({counts}) "
            "GROUP BY time, app ORDER BY time, app"
        )

    def failures(self) -> str:
        """Return a time series per kind: evaluations that failed. Kinds are read of windows with failures only."""
        windows, chosen = f"FROM {self._name('windows')}", self._chosen()
        failing = f"SELECT metric, start {windows} PREWHERE {chosen} WHERE failed > 0"
        return (
            "SELECT $__timeInterval(start) AS time, replaceAll(kind, '_', ' ') AS reason, sum(n) AS failed "
            f"FROM (SELECT start, failures {windows} FINAL PREWHERE {chosen} AND (metric, start) IN ({failing}) "
            "WHERE failed > 0) ARRAY JOIN mapKeys(failures) AS kind, mapValues(failures) AS n "
            "GROUP BY time, reason ORDER BY time, reason"
        )

    def failures_by_evaluator(self) -> str:
        """Return a row per evaluator and kind: evaluations that failed, of how many."""
        counted = (
            "SELECT evaluator, sumMap(failures) AS kinds, sum(applicable) AS applicable_n "
            f"{self.tables.covering(self._among(), _LIVE)} GROUP BY evaluator"
        )
        return (
            f"SELECT evaluator, {self._lane()} AS lane, replaceAll(kind, '_', ' ') AS reason, n AS failed, "
            "n / nullIf(applicable_n, 0) AS share, applicable_n AS `of evaluations` "
            f"FROM ({counted}) ARRAY JOIN mapKeys(kinds) AS kind, mapValues(kinds) AS n "
            "ORDER BY failed DESC, evaluator, reason LIMIT 200"
        )

    def failed_share(self, min_sample: int) -> str:
        """Return a row per evaluator: the failed share of its evaluations; 0 with fewer than `min_sample`."""
        return (
            f"SELECT toString(evaluator) AS evaluator, {self._lane()} AS lane, sum(applicable) AS evaluations, "
            f"if(evaluations >= {min_sample}, sum(failed) / evaluations, 0) AS share {self._windows()} "
            "GROUP BY evaluator, lane"
        )

    def insert_lag(self) -> str:
        """Return a time series: quantiles of the seconds from event time to the row, without labelled traces."""
        lag = "greatest(dateDiff('millisecond', time, ingested_at), 0) / 1000"
        return (
            "SELECT $__timeInterval(at) AS time, found[1] AS median, found[2] AS `95th percentile`, "
            "found[3] AS `99th percentile`, traces FROM (SELECT $__timeInterval(time) AS at, "
            f"quantilesTDigest(0.5, 0.95, 0.99)({lag}) AS found, count() AS traces FROM {self._name('traces')} "
            f"WHERE run_id = 'live' AND $__timeFilter(time) AND {_REVISION} = 0 AND NOT is_deleted GROUP BY at) "
            "ORDER BY time"
        )

    def windows_behind(self) -> str:
        """Return a row per lane: windows that wait for their roll-up, and those of them that could be closed."""
        marks = f"SELECT lane, min(mark) AS mark FROM ({self._marks()}) GROUP BY lane"
        fast = f"(SELECT min(mark) FROM ({self._marks()}) WHERE lane = 'fast')"
        return (
            "SELECT d.lane AS lane, uniqExact(d.run_id, d.app, d.environment, d.start) AS waiting, "
            f"uniqExactIf((d.run_id, d.app, d.environment, d.start), {self._base_end()} <= least(w.mark, {fast})) "
            f"AS closable, max({_AGE('d.marked_at')}) AS oldest, min(d.start) AS `first window` "
            f"FROM (SELECT * FROM {self._name('dirty_windows')} FINAL WHERE NOT done AND run_id IN ('live', 'probe') "
            f"AND marked_at >= subtractDays($__toTime, 7)) AS d LEFT JOIN ({marks}) AS w ON d.lane = w.lane "
            "GROUP BY lane ORDER BY lane"
        )

    def jobs(self) -> str:
        """Return a row per job: last success, and of the runs in the range how many failed and how long they took."""
        runs = (
            "SELECT job, count() AS runs, countIf(failed != '') AS failures, quantileExact(0.5)(took_s) AS median, "
            "quantileExact(0.95)(took_s) AS p95, argMax(failed, (failed != '', started_at)) AS error, "
            "maxIf(started_at, failed != '') AS failed_at "
            f"FROM {self._name('job_history')} FINAL WHERE $__timeFilter(started_at) GROUP BY job"
        )
        last = f"SELECT job, max(finished_at) AS finished FROM {self._name('job_runs')} GROUP BY job"
        return (
            "SELECT job, if(toUnixTimestamp(l.finished) = 0, NULL, "
            f"{_AGE('l.finished')}) AS `last success`, r.runs AS runs, r.failures AS failed, "
            "if(r.runs = 0, NULL, r.median) AS `median duration`, if(r.runs = 0, NULL, r.p95) AS `95th percentile`, "
            "r.error AS `last error`, if(r.failures = 0, NULL, r.failed_at) AS `failed at` "
            f"FROM ({last}) AS l FULL JOIN ({runs}) AS r USING (job) "
            "ORDER BY r.failures > 0 DESC, job LIMIT 100"
        )

    def job_durations(self) -> str:
        """Return a time series per job: the longest run of each point."""
        return (
            "SELECT $__timeInterval(started_at) AS time, job, max(took_s) AS seconds "
            f"FROM {self._name('job_history')} WHERE $__timeFilter(started_at) GROUP BY time, job ORDER BY time, job"
        )

    def leaders(self) -> str:
        """Return the newest elections and how long each leader led."""
        ends = "leadInFrame(toNullable(elected_at)) OVER (ORDER BY epoch ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)"
        return (
            "SELECT elected_at AS elected, epoch, holder, dateDiff('second', elected_at, "
            f"ifNull({ends}, now64(3))) AS led "
            f"FROM {self._name('leaders')} FINAL WHERE elected_at <= $__toTime ORDER BY epoch DESC LIMIT 50"
        )

    def letters_by_reason(self) -> str:
        """Return a time series per reason: dead letters, by the time at which they were stored."""
        return (
            "SELECT $__timeInterval(ingested_at) AS time, replaceAll(reason, '_', ' ') AS why, count() AS letters "
            f"FROM {self._name('dead_letters')} FINAL WHERE $__timeFilter(ingested_at) GROUP BY time, "
            "why ORDER BY time, why"
        )

    def letters(self) -> str:
        """Return a row per topic, stage and reason: dead letters, and how many were replayed or dropped."""
        return (
            "SELECT topic, stage, replaceAll(reason, '_', ' ') AS why, count() AS letters, countIf(mark = '') AS open, "
            "countIf(mark = 'replayed') AS replayed, countIf(mark = 'dropped') AS dropped, max(ingested_at) AS newest, "
            "argMax(detail, ingested_at) AS `newest detail`, "
            "argMax(concat(toString(partition), '/', toString(offset)), ingested_at) AS position "
            f"FROM ({self._letters()}) GROUP BY topic, stage, why ORDER BY open DESC, letters DESC, "
            "topic, why LIMIT 200"
        )

    def tables_by_size(self) -> str:
        """Return the tables with their rows and bytes on disk, as far as the reader may see them."""
        return (
            "SELECT name AS table, total_rows AS rows, total_bytes AS bytes, total_bytes / "
            "nullIf(total_rows, 0) AS `per row` "
            f"FROM system.tables WHERE database = {text(self.tables.database)} AND total_bytes > 0 "
            "AND toDateTime(0) <= $__toTime ORDER BY bytes DESC LIMIT 100"
        )

    def disk(self) -> str:
        """Return the used share of ClickHouse's default disk."""
        return (
            "SELECT 1 - filesystemAvailable() / nullIf(filesystemCapacity(), 0) AS used "
            "WHERE toDateTime(0) <= $__toTime AND filesystemCapacity() > 0"
        )

    def _letters(self) -> str:
        key = ("run_id", "topic", "partition", "offset", "time")
        same = " AND ".join(f"d.{column} = m.{column}" for column in key)
        return (
            "SELECT d.topic AS topic, d.stage AS stage, d.reason AS reason, d.detail AS detail, "
            "d.partition AS partition, "
            "d.offset AS offset, d.ingested_at AS ingested_at, m.state AS mark "
            f"FROM (SELECT * FROM {self._name('dead_letters')} FINAL WHERE $__timeFilter(ingested_at)) AS d "
            f"LEFT JOIN (SELECT * FROM {self._name('dead_letter_marks')} FINAL) AS m ON {same}"
        )

    def _marks(self) -> str:
        return f"SELECT lane, topic, max(watermark) AS mark FROM {self._name('watermarks')} GROUP BY lane, topic"

    def _windows(self, metrics: Sequence[str] = ()) -> str:
        """FROM and WHERE: base windows of live traffic, of these metrics, else of one of each evaluator."""
        return f"FROM {self._name('windows')} FINAL WHERE {self._chosen(metrics)}"

    def _chosen(self, metrics: Sequence[str] = ()) -> str:
        """Condition of `_windows`, on columns of the sorting key alone."""
        return f"{_LIVE} AND size_s = {self._base()} AND {self._among(metrics)} AND {TOTAL} AND $__timeFilter(start)"

    def _among(self, metrics: Sequence[str] = ()) -> str:
        return among(metrics or [f"{one.id}.{self._first(one)}" for one in self.registry.values()])

    def _lane(self) -> str:
        evaluators = array((text(one.id) for one in self.registry.values()), "String")
        lanes = array((text(one.lane) for one in self.registry.values()), "String")
        return f"transform(toString(evaluator), {evaluators}, {lanes}, 'not installed')"

    def _base(self) -> int:
        return min(self.tables.sizes_s)

    def _base_end(self) -> str:
        return f"toDateTime64(d.start, 3, 'UTC') + toIntervalSecond({self._base()})"

    def _silent(self) -> str:
        return f"{_AGE('heartbeat_at')} > {self.heartbeat_timeout_s:g}"

    def _name(self, table: str) -> str:
        return self.tables.name(table)

    @staticmethod
    def _first(evaluator: Evaluator) -> str:
        """Return the metric whose windows count the evaluator's records."""
        plain = [metric for metric in evaluator.metrics if not metric.per]
        return next((metric.key for metric in plain if metric.primary), plain[0].key)
