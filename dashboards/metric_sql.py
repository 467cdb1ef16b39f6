"""SQL of one metric: over time, by segment and version, against its detector, its verdicts and its worst traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.interval_sql import mean_interval
from ragtide.dashboards.metric_scale import EVALUATOR, KEY, MetricScale
from ragtide.dashboards.quality_sql import Judge
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sql import APP, HERE, RUN, TOTAL, Tables, counts, words
from ragtide.dashboards.variable_sql import equals_variable, in_variable
from ragtide.drift.windows import MetricRef

METRIC = equals_variable("metric")
_SEGMENT = equals_variable("segment")
_LINES = 10  # of segments and versions in a graph
_ROWS = 200
_WORST = 20
_REFERENCE_DAYS = 7
# What the windows of a group add up to: mean, its interval, records.
_SUMS = (
    "sum(level_n) / nullIf(sum(told_n), 0) AS mean_value, sum(told_n) AS n, sum(sum_squares) AS squares, "
    "sum(bad_n) / nullIf(sum(scored), 0) AS bad_share, sum(scored) AS scored_n, sum(applicable) AS applicable_n"
)


@dataclass(frozen=True, slots=True)
class OneMetric:
    """The queries of the metric that the variable `metric` names."""

    tables: Tables
    rule_lines: Sequence[RuleLine]
    metrics: Mapping[str, MetricRef]

    @property
    def judge(self) -> Judge:
        """The lines of the rules."""
        return Judge(self.rule_lines)

    @property
    def scale(self) -> MetricScale:
        """The scale of the metric."""
        return MetricScale(self.metrics)

    def over_time(self) -> str:
        """A time series of the mean with its interval, and the limit where the rule judges the mean."""
        judge = self.judge
        grouped = f"SELECT $__timeInterval(start) AS time, metric, {_SUMS} {self._windows()} GROUP BY time, metric"
        low, high = self._interval()
        return (
            f"SELECT time, {low} AS `at least`, {high} AS `at most`, mean_value AS mean, "
            f"if({judge.limit} < 0, {judge.line}, NULL) AS limit FROM ({grouped}) ORDER BY time"
        )

    def bad_records(self) -> str:
        """A time series of the share of bad records, and the limit where the rule judges records."""
        judge = self.judge
        grouped = f"SELECT $__timeInterval(start) AS time, metric, {_SUMS} {self._windows()} GROUP BY time, metric"
        return (
            f"SELECT time, if(isNull({judge.line}), NULL, bad_share) AS `bad records`, "
            f"if({judge.limit} < 0, NULL, {judge.limit}) AS limit FROM ({grouped}) ORDER BY time"
        )

    def coverage(self) -> str:
        """A time series: what became of the traces seen."""
        return (
            "SELECT $__timeInterval(start) AS time, sum(scored_n) AS scored, sum(failed_n) AS failed, "
            "sum(sampled_n) - sum(applicable_n) AS `not applicable`, sum(seen_n) - sum(sampled_n) AS `not evaluated` "
            f"FROM ({counts(self.tables.sized(METRIC))}) GROUP BY time ORDER BY time"
        )

    def quantiles(self) -> str:
        """A time series of five quantiles, read from the bins of windows."""
        levels = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95}
        found = f"quantilesExactWeighted({', '.join(map(str, levels.values()))})({self.scale.value_of_bin()}, n)"
        each = f"SELECT time, {found} AS found FROM ({self._bins_over_time()}) GROUP BY time"
        columns = ", ".join(f"found[{number}] AS {name}" for number, name in enumerate(levels, start=1))
        return f"SELECT time, {columns} FROM ({each}) ORDER BY time"

    def heat_map(self) -> str:
        """Traces by time and bucket of values; the bucket is named by its lower end."""
        grouped = (
            f"SELECT time, {self.scale.bucket()} AS bucket, sum(n) AS traces FROM ({self._bins_over_time()}) "
            "GROUP BY time, bucket"
        )
        return f"SELECT time, {self.scale.bucket_label()} AS label, traces FROM ({grouped}) ORDER BY time, bucket"

    def figures(self) -> str:
        """One row of the range: the mean with its interval, quantiles, records, and the metric in words."""
        judge, (low, high) = self.judge, self._interval()
        merged = f"SELECT sumMap(bins) AS merged {self.tables.covering(METRIC)}"
        bins = f"SELECT arrayJoin(mapKeys(merged)) AS bin, merged[bin] AS n FROM ({merged})"
        quantiles = f"SELECT quantilesExactWeighted(0.05, 0.5, 0.95)({self.scale.value_of_bin()}, n) FROM ({bins})"
        more = ", sum(level_n) AS level, sum(told_n) AS told, sum(sum_squares) AS squares_n, sum(bad_n) AS wrong_n"
        windows = counts(judge.windows(self.tables.covering(METRIC)), more)
        summed = (
            "SELECT metric, sum(level) / nullIf(sum(told), 0) AS mean_value, sum(told) AS n, "
            "sum(squares_n) AS squares, "
            "sum(wrong_n) / nullIf(sum(scored_n), 0) AS bad_share, sum(scored_n) AS scored, "
            f"sum(applicable_n) AS applicable, sum(seen_n) AS seen FROM ({windows}) GROUP BY metric"
        )
        return (
            f"WITH ({quantiles}) AS q SELECT metric, mean_value AS mean, {low} AS `at least`, {high} AS `at most`, "
            f"q[1] AS p5, q[2] AS median, q[3] AS p95, if(isNull({judge.line}), NULL, bad_share) AS `bad records`, "
            f"{judge.line} AS line, if({judge.limit} < 0, NULL, {judge.limit}) AS `limit of bad records`, scored, "
            "scored / nullIf(applicable, 0) AS `of applicable`, scored / nullIf(seen, 0) AS `of all`, "
            f"{self.scale.described()} FROM ({summed})"
        )

    def figure(self, column: str) -> str:
        """One number of `figures`."""
        sums = {
            "mean": "sum(level_n) / nullIf(sum(told_n), 0)",
            "traces": "if(count() = 0, NULL, sum(scored))",
            "coverage": "sum(scored) / nullIf(sum(applicable), 0)",
            "bad": f"if(isNull(any({self.judge.line})), NULL, sum(bad_n) / nullIf(sum(scored), 0))",
        }
        return f"SELECT {sums[column]} AS {column} {self.judge.windows(self.tables.covering(METRIC))}"

    def by_segment(self) -> str:
        """A time series per value of the chosen segment, of those with the most records."""
        return self._lines("segment_value", _SEGMENT)

    def segment_rows(self) -> str:
        """One row per value of the chosen segment, that with the most records first."""
        return self._rows("segment_value AS value", "segment_value", _SEGMENT)

    def by_version(self) -> str:
        """A time series per model and prompt version, of those with the most records."""
        return self._lines(words("model", "prompt_version"), TOTAL)

    def version_rows(self) -> str:
        """One row per model, prompt version and fingerprint of the evaluator, that with the most records first."""
        return self._rows(
            "model, prompt_version AS `prompt version`, fingerprint AS `evaluator version`",
            "model, prompt_version, fingerprint",
            TOTAL,
        )

    def _windows(self, segment: str = TOTAL) -> str:
        return self.judge.windows(self.tables.sized(METRIC, segment=segment))

    def _interval(self) -> tuple[str, str]:
        """Both ends of the interval of the mean; NULL for a number of whole windows."""
        low, high = mean_interval("mean_value", "n", "squares")
        low, high = self.scale.within_range(low, high)
        return f"if({self.judge.own}, NULL, {low})", f"if({self.judge.own}, NULL, {high})"

    def _bins_over_time(self) -> str:
        merged = (
            f"SELECT $__timeInterval(start) AS time, sumMap(bins) AS merged {self.tables.sized(METRIC)} GROUP BY time"
        )
        return f"SELECT time, arrayJoin(mapKeys(merged)) AS bin, merged[bin] AS n FROM ({merged})"

    def _lines(self, name: str, segment: str) -> str:
        sized = self.tables.sized(METRIC, segment=segment)
        most = (
            f"SELECT {name} AS name {sized} GROUP BY name HAVING sum(scored) > 0 "
            f"ORDER BY sum(scored) DESC, name LIMIT {_LINES}"
        )
        return (
            f"SELECT $__timeInterval(start) AS time, {name} AS name, sum(level_n) / nullIf(sum(told_n), 0) AS mean "
            f"{self._windows(segment)} WHERE {name} IN ({most}) GROUP BY time, name ORDER BY time, name"
        )

    def _rows(self, columns: str, by: str, segment: str) -> str:
        (low, high), judge = self._interval(), self.judge
        windows = judge.windows(self.tables.covering(METRIC, segment=segment))
        grouped = f"SELECT metric, {by}, {_SUMS} {windows} GROUP BY metric, {by}"
        return (
            f"SELECT {columns}, mean_value AS mean, {low} AS `at least`, {high} AS `at most`, "
            f"if(isNull({judge.line}), NULL, bad_share) AS `bad records`, scored_n AS traces, "
            f"scored_n / nullIf(applicable_n, 0) AS `of applicable` FROM ({grouped}) "
            f"ORDER BY traces DESC, {by} LIMIT {_ROWS}"
        )

    def distribution(self) -> str:
        """Share of records by bucket of values, in the time range and in the days before it."""
        until = "start < $__fromTime"
        since = f"start >= $__fromTime - INTERVAL {_REFERENCE_DAYS} DAY"
        size = next((size for size in sorted(self.tables.sizes_s) if size >= 3600), min(self.tables.sizes_s))
        before = (
            f"SELECT sumMap(bins) AS merged, 0 AS is_now FROM {self.tables.name('windows')} FINAL "
            f"PREWHERE {HERE} AND {METRIC} AND {TOTAL} AND size_s = {size} AND {since} AND {until}"
        )
        now = f"SELECT sumMap(bins) AS merged, 1 AS is_now {self.tables.covering(METRIC)}"
        bins = (
            f"SELECT is_now, arrayJoin(mapKeys(merged)) AS bin, merged[bin] AS n FROM ({now} UNION ALL {before}) "
            f"UNION ALL SELECT 2, arrayJoin({self.scale.first_bins()}), 0"
        )
        grouped = (
            f"SELECT {self.scale.bucket()} AS bucket, sumIf(n, is_now = 1) AS now_n, sumIf(n, is_now = 0) AS before_n "
            f"FROM ({bins}) GROUP BY bucket"
        )
        totals = "sum(now_n) OVER () AS now_all, sum(before_n) OVER () AS before_all"
        return (
            f"SELECT trimLeft({self.scale.bucket_label()}) AS value, now_n / nullIf(now_all, 0) AS `time range`, "
            f"before_n / nullIf(before_all, 0) AS `{_REFERENCE_DAYS} days before`, now_n AS traces, "
            f"before_n AS `traces before` FROM (SELECT *, {totals} FROM ({grouped})) ORDER BY bucket"
        )

    def verdicts(self) -> str:
        """A series per rule, environment, model and segment: 1 where the rule found the windows good, 2 where bad."""
        segment = "if(segment = '', '', concat(segment, '=', segment_value))"
        label = words("splitByChar(':', rule_id)[1]", "environment", "model", segment)
        found = (
            f"SELECT $__timeInterval(end) AS time, {label} AS rule, "
            "max(multiIf(samples = 0, 0, breached = 1, 2, 1)) AS verdict "
            f"FROM {self.tables.name('verdicts')} FINAL WHERE {RUN} AND {APP} AND {METRIC} AND "
            f"{in_variable('environment')} AND (model = '' OR {in_variable('model')}) "
            "AND start <= $__toTime AND $__timeFilter(end) GROUP BY time, rule"
        )
        return (
            f"SELECT time, rule, verdict FROM ({found}) WHERE rule IN (SELECT rule FROM ({found}) GROUP BY rule "
            f"ORDER BY countIf(verdict = 2) DESC, count() DESC, rule LIMIT {_LINES}) ORDER BY time, rule"
        )

    def worst_traces(self, trace_link: str) -> str:
        """The traces with the worst scores of the time range, the newest of equal ones first."""
        return (
            f"SELECT time, trace_id AS trace, metrics[{KEY}] AS score, environment, model, "
            "prompt_version AS `prompt version`, arrayStringConcat(findings, ', ') AS findings, "
            f"{trace_link} AS trace_link FROM {self.tables.name('scores')} FINAL WHERE {HERE} "
            f"AND evaluator = {EVALUATOR} AND $__timeFilter(time) AND status = 'scored' "
            f"AND mapContains(metrics, {KEY}) ORDER BY score * if({self.scale.higher}, 1, -1), time DESC, trace_id "
            f"LIMIT {_WORST}"
        )

    def problems(self) -> str:
        """Problems of the metric that were open in the time range, the newest first."""
        return (
            "SELECT state, severity, opened_at AS opened, resolved_at AS resolved, environment, model, "
            "if(segment = '', '', concat(segment, ' = ', segment_value)) AS segment, description, "
            f"explanation AS why, problem_id {self._problems_here()} ORDER BY opened_at DESC LIMIT 50"
        )

    def onsets(self) -> str:
        """Annotation query: the time of every problem of the metric, from its onset on."""
        return (
            "SELECT ifNull(since, assumeNotNull(opened_at)) AS time, ifNull(resolved_at, now64(3)) AS timeEnd, "
            "trimRight(concat(severity, ' ', type, ': ', description, ' ', explanation)) AS text, "
            f"arrayStringConcat([state, severity, metric], ',') AS tags {self._problems_here()} "
            "ORDER BY time DESC LIMIT 200"
        )

    def _problems_here(self) -> str:
        return (
            f"FROM {self.tables.name('problems')} WHERE state IN ('open', 'resolved') AND {APP} AND {METRIC} "
            f"AND {in_variable('environment')} AND opened_at <= $__toTime "
            "AND ifNull(resolved_at, now64(3)) >= $__fromTime"
        )
