"""SQL of the dashboards: macros and variables as the ClickHouse plugin 4.x and Grafana expand them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.variable_sql import equals_variable, in_variable, number, value
from ragtide.drift.sql import text
from ragtide.drift.windows import LOG_ORIGIN, LOG_STEP
from ragtide.evaluators.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LOG_MIDDLE = f"if(bin = 0, 0, sign(bin) * exp((abs(bin) - {LOG_ORIGIN} + 0.5) * {LOG_STEP!r}))"  # of a logarithmic bin
APP = equals_variable("app")
RUN = f"run_id = {value('run')}"
# Of the application and of the system itself, which belongs to no application.
_SHOWN = f"(app = '' OR {APP} AND {in_variable('environment')})"
OPEN_PROBLEMS = f"state = 'open' AND opened_at <= $__toTime AND {_SHOWN}"
TRAFFIC = "operations.error"  # of the fast lane, scored for every trace
# Conditions on rows of `windows`: the chosen application, every application, and windows of all traces.
HERE = f"{RUN} AND {APP} AND {in_variable('environment')} AND {in_variable('model')}"
FLEET = f"{RUN} AND {in_variable('environment')}"
TOTAL = "segment = ''"


@dataclass(frozen=True, slots=True)
class Tables:
    """Database of the tables, sizes of windows, and metrics of which every application has windows.

    Windows are read by conditions on the columns of their sorting key alone, in PREWHERE: so ClickHouse reads the other
    columns of the chosen rows only, in spite of FINAL. Conditions on other columns follow in WHERE: they must see the
    newest state of each window.
    """

    database: str = "ragtide"
    sizes_s: Sequence[int] = (60, 3600, 86400)
    present: Sequence[str] = (TRAFFIC,)

    def __post_init__(self) -> None:
        if not _PLAIN.fullmatch(self.database):
            raise ConfigError(f"clickhouse.database: dashboards want letters, digits and _ only, not {self.database!r}")

    def name(self, table: str) -> str:
        """The table's full name: the data source may have another default database."""
        return f"{self.database}.{table}"

    def is_parent(self, shown: str = _SHOWN) -> str:
        """Condition of problems that no other one of those shown explains; for rows of view `problems`.

        A symptom is left out although its parent has resolved: jobs name the parent as long as the symptom is expected.
        """
        return f"parent_id NOT IN (SELECT problem_id FROM {self.name('problem_events')} WHERE {shown})"

    def is_parent_in_app(self) -> str:
        """Condition of problems that no other one of the same application explains; for rows of view `problems`."""
        return f"(parent_id, app) NOT IN (SELECT problem_id, app FROM {self.name('problem_events')})"

    def opening_kinds(self) -> str:
        """SELECT of the kind that opened each problem, as `opened_by`, which alerts are named after."""
        return (
            "SELECT problem_id, episode, "
            "argMinIf(toString(kind), (at, event_id), event IN ('opened', 'reopened')) AS opened_by "
            f"FROM {self.name('problem_events')} FINAL GROUP BY problem_id, episode"
        )

    def is_silenced(self) -> str:
        """Condition of problems whose alerts a silence of Alertmanager holds back now."""
        return f"problem_id IN (SELECT problem_id FROM {self._silences()})"

    def silenced_by(self) -> str:
        """SELECT of who silenced each problem in Alertmanager, until when: the silence that ends last."""
        until = "formatDateTime(max(ends_at), '%Y-%m-%d %H:%i')"
        who = "if(argMax(created_by, ends_at) = '', 'unknown', argMax(created_by, ends_at))"
        return (
            f"SELECT problem_id AS silenced_id, concat({who}, ' until ', {until}) AS silenced_by "
            f"FROM {self._silences()} GROUP BY problem_id"
        )

    def _silences(self) -> str:
        return f"{self.name('alert_silences')} FINAL WHERE ends_at > now64(3)"

    def windows(self, metrics: Iterable[str], segment: str = "") -> str:
        """FROM and WHERE: windows of the chosen application, of the size that suits the range, cut by that segment."""
        return self.sized(among(metrics), segment=f"segment = {text(segment)}")

    def choices(self, every_metric: bool = False) -> str:
        """FROM and WHERE of what variables offer: few windows, but of all that there is in the time range.

        Windows of about a twenty-fourth of the range, and of its end also the smallest ones, since larger ones close
        later.
        """
        size = self.size_within("intDiv(dateDiff('second', $__fromTime, $__toTime), 24)")
        newest = f"size_s = {min(self.sizes_s)} AND toUnixTimestamp(start) >= toUnixTimestamp($__toTime) - 2 * {size}"
        metric = "" if every_metric else f" AND {among(self.present)}"
        return (
            f"FROM {self.name('windows')} WHERE $__timeFilter(start) AND {TOTAL}{metric} "
            f"AND (size_s = {size} OR ({newest}))"
        )

    def sized(self, metric: str, scope: str = HERE, segment: str = TOTAL) -> str:
        """FROM and WHERE: windows of the size that suits the range; metric, scope and segment are conditions."""
        chosen = f"{scope} AND {metric} AND $__timeFilter(start) AND {segment}"
        return f"FROM {self.name('windows')} FINAL PREWHERE {chosen} AND size_s = {self.size()}"

    def whole_range(self, metrics: Iterable[str]) -> str:
        """FROM and WHERE: windows of the chosen application that cover the time range once, see `covering`."""
        return self.covering(among(metrics))

    def covering(
        self,
        metric: str,
        scope: str = HERE,
        segment: str = TOTAL,
        since: str = "$__fromTime",
        closed_until: Mapping[int, str] | None = None,
        whole_hours: bool = False,
    ) -> str:
        """FROM and WHERE: windows that cover the time range once, whatever size is chosen.

        Closed windows of the largest size inside the range, and smaller ones at both ends: a figure of the range does
        not change with the size. Metric, scope and segment are conditions; `since` is the start of the range. In place
        of the subqueries of `closed_until`, a query that asks for several sets of metrics passes names for them, so
        that ClickHouse analyses them once. With `whole_hours` the windows below an hour after the last closed hour are
        left out, unless the range is short or no hour in it is closed.
        """
        within = f"start >= {since} AND start <= $__toTime AND {segment}"
        source = f"FROM {self.name('windows')} FINAL PREWHERE {scope} AND {metric} AND {within}"
        untils = closed_until or self.closed_until(metric, scope, segment, since)
        smallest, *larger = sorted(self.sizes_s)
        parts, covered = [], ""
        for size in reversed(larger):
            first = f"intDiv(toUnixTimestamp({since}) + {size - 1}, {size}) * {size}"
            until = untils[size]
            inside = f"toUnixTimestamp(start) >= {first} AND toUnixTimestamp(start) < {until}"
            parts.append(f"(size_s = {size}{covered} AND {inside})")
            covered += f" AND NOT ({inside})"
            if whole_hours and size == 3600:
                covered += (
                    f" AND (toUnixTimestamp($__toTime) - toUnixTimestamp({since}) < {6 * size} OR {until} <= {size})"
                )
        return f"{source} AND ({' OR '.join([*parts, f'(size_s = {smallest}{covered})'])})"

    def closed_until(
        self, metric: str, scope: str = HERE, segment: str = TOTAL, since: str = "$__fromTime"
    ) -> dict[int, str]:
        """Subqueries by window size, all but the smallest: the end of the last closed window inside the range."""
        within = f"start >= {since} AND start <= $__toTime AND {segment}"
        newest = f"FROM {self.name('windows')} PREWHERE {scope} AND {metric} AND {within}"
        return {
            size: f"(SELECT max(toUnixTimestamp(start)) + {size} {newest} AND size_s = {size} "
            f"AND toUnixTimestamp(start) + {size} <= toUnixTimestamp($__toTime))"
            for size in sorted(self.sizes_s)[1:]
        }

    def size(self) -> str:
        """The window size: the chosen one, else the largest that is not longer than a point of the graph."""
        return f"if({number('resolution')} > 0, {number('resolution')}, {self.size_within('$__interval_s')})"

    def rounded_start(self) -> str:
        """The start of the time range, of long ones back to a whole hour: no minutes are read at their start."""
        size = max((size for size in self.sizes_s if size <= 3600), default=min(self.sizes_s))
        return (
            f"if(toUnixTimestamp($__toTime) - toUnixTimestamp($__fromTime) >= {6 * size}, "
            f"toDateTime(intDiv(toUnixTimestamp($__fromTime), {size}) * {size}), $__fromTime)"
        )

    def size_within(self, seconds: str) -> str:
        """The largest window size that is not longer than these seconds; the smallest if none is."""
        smallest, *larger = sorted(self.sizes_s)
        cases = "".join(f"{seconds} >= {size}, {size}, " for size in reversed(larger))
        return f"multiIf({cases}{smallest})" if cases else f"{smallest}"

    def means(self, names: Mapping[str, str]) -> str:
        """A time series per metric, called as `names` says: the mean over scored records, empty where none was."""
        each = ", ".join(
            f"sumIf(sum, metric = {text(metric)}) / nullIf(sumIf(scored, metric = {text(metric)}), 0) AS `{name}`"
            for metric, name in names.items()
        )
        return f"SELECT $__timeInterval(start) AS time, {each} {self.windows(names)} GROUP BY time ORDER BY time"

    def estimates(self, metric: str) -> str:
        """A time series: the estimate for all traces with its 95 % interval, and the weighted mean of judged ones.

        Windows of a point count by their traces; their errors are independent.
        """
        seen, known = "greatest(seen, 1)", "isNotNull(estimate_low)"
        estimated = f"sumIf({seen} * estimate, {known}) / sumIf({seen}, {known})"
        error = f"sqrt(sumIf(pow({seen} * (estimate_high - estimate_low) / 2, 2), {known})) / sumIf({seen}, {known})"
        weighted = f"sumIf({seen} * weighted_mean, isNotNull(weighted_mean)) / sumIf({seen}, isNotNull(weighted_mean))"
        columns = {"at least": "level - error", "estimate": "level", "at most": "level + error"}
        each = ", ".join(f"if(isFinite(level), {found}, NULL) AS `{name}`" for name, found in columns.items())
        return (
            f"SELECT time, {each}, if(isFinite(weighted), weighted, NULL) AS `weighted mean` FROM ("
            f"SELECT $__timeInterval(start) AS time, assumeNotNull({estimated}) AS level, "
            f"assumeNotNull({error}) AS error, assumeNotNull({weighted}) AS weighted "
            f"{self.windows([metric])} GROUP BY time) ORDER BY time"
        )

    def bad_records(self, rule_line: RuleLine) -> str:
        """A time series: the share of scored records on the wrong side of the line."""
        bad, count = wrong(str(int(rule_line.is_min) * 2 - 1), str(rule_line.edge)), "nullIf(sum(scored), 0)"
        return (
            f"SELECT $__timeInterval(start) AS time, sum({bad}) / {count} AS `bad records` "
            f"{self.windows([rule_line.metric])} GROUP BY time ORDER BY time"
        )

    def quantiles(self, metric: str) -> str:
        """Median, 95th and 99th percentile of an unbounded metric, to half a percent: read from logarithmic bins."""
        found = f"quantilesExactWeighted(0.5, 0.95, 0.99)({LOG_MIDDLE}, n)"
        bins = bins_of(self.windows([metric]))
        each = f"SELECT $__timeInterval(start) AS time, {found} AS found FROM ({bins}) GROUP BY time"
        return f"SELECT time, found[1] AS p50, found[2] AS p95, found[3] AS p99 FROM ({each}) ORDER BY time"

    def quantile(self, metric: str, level: float) -> str:
        """One quantile over the whole time range; no row without records."""
        bins = bins_of(self.whole_range([metric]))
        return f"SELECT quantileExactWeighted({level})({LOG_MIDDLE}, n) AS quantile FROM ({bins}) HAVING count() > 0"

    def coverage(self, metric: str) -> str:
        """Of the traces seen, how many were scored and how many were not, and in which way; they add up."""
        return (
            "SELECT $__timeInterval(start) AS time, sum(scored_n) AS scored, sum(failed_n) AS failed, "
            "sum(sampled_n) - sum(applicable_n) AS `not applicable`, sum(seen_n) - sum(sampled_n) AS `not evaluated` "
            f"FROM ({counts(self.windows([metric]))}) GROUP BY time ORDER BY time"
        )

    def reasons(self, metric: str) -> str:
        """Why records were not scored, most frequent first."""
        return (
            "SELECT entry.1 AS reason, sum(entry.2) AS traces FROM ("
            f"SELECT arrayJoin(arrayConcat(CAST(skipped, 'Array(Tuple(String, UInt64))'), "
            f"CAST(failures, 'Array(Tuple(String, UInt64))'))) AS entry {self.whole_range([metric])}) "
            "GROUP BY reason ORDER BY traces DESC, reason LIMIT 20"
        )

    def traffic(self) -> str:
        """Traces per minute by environment."""
        per_minute = f"sum(seen_n) * 60 / greatest($__interval_s, {self.size()})"
        return (
            f"SELECT $__timeInterval(start) AS time, environment, {per_minute} AS traces "
            f"FROM ({counts(self.windows([TRAFFIC]))}) GROUP BY time, environment ORDER BY time"
        )

    def traces(self) -> str:
        """How many traces there were in the time range."""
        return f"SELECT sum(seen_n) AS traces FROM ({counts(self.whole_range([TRAFFIC]))}) HAVING count() > 0"


def words(*texts: str) -> str:
    """Return the SQL of those texts that are not empty, with a space between."""
    return f"arrayStringConcat(arrayFilter(word -> word != '', [{', '.join(texts)}]), ' ')"


def among(metrics: Iterable[str]) -> str:
    """Condition: a row of `windows` is of one of these metrics; there is at least one."""
    return f"metric IN ({', '.join(text(metric) for metric in metrics)})"


def wrong(sign: str, edge: str) -> str:
    """Number of a window's records in bins beyond the edge; `sign` is 1 where small values are bad, else -1."""
    return f"arraySum(mapValues(mapFilter((bin, n) -> bin * {sign} < {edge} * {sign}, bins)))"


def bins_of(windows: str) -> str:
    """SELECT of the bins of windows: `start`, `bin` and its number of records `n`."""
    return f"SELECT start, arrayJoin(mapKeys(bins)) AS bin, bins[bin] AS n {windows}"


def counts(windows: str, more: str = "") -> str:
    """Per window and dimensions; `seen` speaks of traces, so it is the same for each fingerprint: not summed."""
    return (
        "SELECT start, metric, environment, model, prompt_version, max(seen) AS seen_n, sum(sampled) AS sampled_n, "
        "sum(applicable) AS applicable_n, sum(scored) AS scored_n, sum(failed) AS failed_n, sum(sum) AS total"
        f"{more} {windows} GROUP BY start, metric, environment, model, prompt_version"
    )
