"""SQL of the dashboards: macros and variables as the ClickHouse plugin 4.x and Grafana expand them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.variable_sql import equals_variable, in_variable, number, value
from ragtide.drift.rules import ROUNDING
from ragtide.drift.sql import text
from ragtide.drift.windows import LOG_ORIGIN, LOG_STEP
from ragtide.evaluators.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MIDDLE = f"if(bin = 0, 0, sign(bin) * exp((abs(bin) - {LOG_ORIGIN} + 0.5) * {LOG_STEP!r}))"  # of a logarithmic bin
APP = equals_variable("app")
RUN = f"run_id = {value('run')}"
# Of the application and of the system itself, which belongs to no application.
_SHOWN = f"(app = '' OR {APP} AND {in_variable('environment')})"
OPEN_PROBLEMS = f"state = 'open' AND opened_at <= $__toTime AND {_SHOWN}"
TRAFFIC = "operations.error"  # of the fast lane, scored for every trace


@dataclass(frozen=True, slots=True)
class Tables:
    """Database of the tables, and sizes of windows."""

    database: str = "ragtide"
    sizes_s: Sequence[int] = (60, 3600, 86400)

    def __post_init__(self) -> None:
        if not _PLAIN.fullmatch(self.database):
            raise ConfigError(f"clickhouse.database: dashboards want letters, digits and _ only, not {self.database!r}")

    def name(self, table: str) -> str:
        """The table's full name: the data source may have another default database."""
        return f"{self.database}.{table}"

    def is_parent(self) -> str:
        """Condition of problems that no other one of these applications explains; for rows of view `problems`.

        A symptom is left out although its parent has resolved: jobs name the parent as long as the symptom is expected.
        """
        return f"parent_id NOT IN (SELECT problem_id FROM {self.name('problem_events')} WHERE {_SHOWN})"

    def windows(self, metrics: Iterable[str], segment: str = "") -> str:
        """FROM and WHERE: windows of the chosen application, of the size that suits the range, cut by that segment."""
        return f"{self._any_size(metrics, segment)} AND size_s = {self.size()}"

    def whole_range(self, metrics: Iterable[str]) -> str:
        """FROM and WHERE: windows that cover the time range once, whatever size is chosen.

        Closed windows of the largest size inside the range, and smaller ones at both ends: a figure of the range does
        not change with the size.
        """
        source = self._any_size(metrics, "")
        smallest, *larger = sorted(self.sizes_s)
        parts, covered = [], ""
        for size in reversed(larger):
            first = f"intDiv(toUnixTimestamp($__fromTime) + {size - 1}, {size}) * {size}"
            ends_inside = f"size_s = {size} AND toUnixTimestamp(start) + {size} <= toUnixTimestamp($__toTime)"
            until = f"(SELECT max(toUnixTimestamp(start)) + {size} {source} AND {ends_inside})"
            inside = f"toUnixTimestamp(start) >= {first} AND toUnixTimestamp(start) < {until}"
            parts.append(f"(size_s = {size}{covered} AND {inside})")
            covered += f" AND NOT ({inside})"
        return f"{source} AND ({' OR '.join([*parts, f'(size_s = {smallest}{covered})'])})"

    def _any_size(self, metrics: Iterable[str], segment: str) -> str:
        listed = ", ".join(text(metric) for metric in metrics)
        return (
            f"FROM {self.name('windows')} FINAL WHERE {RUN} AND {APP} AND metric IN ({listed}) "
            f"AND $__timeFilter(start) AND segment = {text(segment)} "
            f"AND {in_variable('environment')} AND {in_variable('model')}"
        )

    def size(self) -> str:
        """The window size: the chosen one, else the largest that is not longer than a point of the graph."""
        smallest, *larger = sorted(self.sizes_s)
        cases = "".join(f"$__interval_s >= {size}, {size}, " for size in reversed(larger))
        by_range = f"multiIf({cases}{smallest})" if cases else f"{smallest}"
        return f"if({number('resolution')} > 0, {number('resolution')}, {by_range})"

    def means(self, names: Mapping[str, str]) -> str:
        """A time series per metric, called as `names` says: the mean over scored records, empty where none was."""
        each = ", ".join(
            f"sumIf(sum, metric = {text(metric)}) / nullIf(sumIf(scored, metric = {text(metric)}), 0) AS `{name}`"
            for metric, name in names.items()
        )
        return f"SELECT $__timeInterval(start) AS time, {each} {self.windows(names)} GROUP BY time ORDER BY time"

    def bad_records(self, rule_line: RuleLine) -> str:
        """A time series: the share of scored records on the wrong side of the line."""
        bad, count = _wrong(str(int(rule_line.is_min) * 2 - 1), str(rule_line.edge)), "nullIf(sum(scored), 0)"
        return (
            f"SELECT $__timeInterval(start) AS time, sum({bad}) / {count} AS `bad records` "
            f"{self.windows([rule_line.metric])} GROUP BY time ORDER BY time"
        )

    def quantiles(self, metric: str) -> str:
        """Median, 95th and 99th percentile of an unbounded metric, to half a percent: read from logarithmic bins."""
        found = f"quantilesExactWeighted(0.5, 0.95, 0.99)({_MIDDLE}, n)"
        bins = _bins(self.windows([metric]))
        each = f"SELECT $__timeInterval(start) AS time, {found} AS found FROM ({bins}) GROUP BY time"
        return f"SELECT time, found[1] AS p50, found[2] AS p95, found[3] AS p99 FROM ({each}) ORDER BY time"

    def quantile(self, metric: str, level: float) -> str:
        """One quantile over the whole time range; no row without records."""
        bins = _bins(self.whole_range([metric]))
        return f"SELECT quantileExactWeighted({level})({_MIDDLE}, n) AS quantile FROM ({bins}) HAVING count() > 0"

    def coverage(self, metric: str) -> str:
        """Of the traces seen, how many were scored and how many were not, and in which way; they add up."""
        return (
            "SELECT $__timeInterval(start) AS time, sum(scored_n) AS scored, sum(failed_n) AS failed, "
            "sum(sampled_n) - sum(applicable_n) AS `not applicable`, sum(seen_n) - sum(sampled_n) AS `not evaluated` "
            f"FROM ({_counts(self.windows([metric]))}) GROUP BY time ORDER BY time"
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
            f"FROM ({_counts(self.windows([TRAFFIC]))}) GROUP BY time, environment ORDER BY time"
        )

    def traces(self) -> str:
        """How many traces there were in the time range."""
        return f"SELECT sum(seen_n) AS traces FROM ({_counts(self.whole_range([TRAFFIC]))}) HAVING count() > 0"

    def overview(self, rule_lines: Sequence[RuleLine]) -> str:
        """One row per metric: mean, share of bad records, sample size, coverage; the bad ones first."""
        names = f"[{', '.join(text(each.metric) for each in rule_lines)}]"

        def by_metric(values: Iterable[float], otherwise: str) -> str:
            return f"transform(metric, {names}, [{', '.join(map(repr, values))}], {otherwise})"

        line = by_metric((each.line for each in rule_lines), "0.")
        sign = by_metric((1 if each.is_min else -1 for each in rule_lines), "1")
        edge = by_metric((each.edge for each in rule_lines), "0")
        most = by_metric((-1.0 if each.limit is None else each.limit for each in rule_lines), "-1.")
        own = f"has([{', '.join(text(each.metric) for each in rule_lines if each.own)}], metric)"
        more = f", sum({_wrong(sign, edge)}) AS wrong_n, sumIf(scored, NOT {own} OR isNotNull(value)) AS told_n"
        more += f", sum(if({own}, ifNull(value, 0) * scored, sum)) AS level_n"
        counts = _counts(self.whole_range(each.metric for each in rule_lines), more)
        problems = f"SELECT metric FROM {self.name('problems')} WHERE {OPEN_PROBLEMS}"
        open_ = f"metric IN ({problems}) OR splitByChar('.', metric)[1] IN ({problems})"  # findings are of an evaluator
        passes = f"if({most} < 0, (mean - line) * {sign} >= -{ROUNDING} * abs(line), `bad records` <= {most})"
        return (
            f"WITH {line} AS line SELECT metric, sum(level_n) / nullIf(sum(told_n), 0) AS mean, "
            f"if({most} < 0, line, NULL) AS `limit of mean`, sum(wrong_n) / nullIf(sum(scored_n), 0) AS `bad records`, "
            f"if({most} < 0, NULL, {most}) AS `limit of bad records`, "
            f"multiIf({open_}, 'problem', isNull(mean), 'no data', {passes}, 'good', 'bad') AS state, "
            "sum(scored_n) AS scored, "
            "sum(scored_n) / nullIf(sum(applicable_n), 0) AS `of applicable`, "
            f"sum(scored_n) / nullIf(sum(seen_n), 0) AS `of all` FROM ({counts}) "
            "GROUP BY metric ORDER BY indexOf(['problem', 'bad', 'good', 'no data'], state), metric"
        )


def _wrong(sign: str, edge: str) -> str:
    """Number of a window's records in bins beyond the edge; `sign` is 1 where small values are bad, else -1."""
    return f"arraySum(mapValues(mapFilter((bin, n) -> bin * {sign} < {edge} * {sign}, bins)))"


def _bins(windows: str) -> str:
    return f"SELECT start, arrayJoin(mapKeys(bins)) AS bin, bins[bin] AS n {windows}"


def _counts(windows: str, more: str = "") -> str:
    """Per window and dimensions; `seen` speaks of traces, so it is the same for each fingerprint: not summed."""
    return (
        "SELECT start, metric, environment, model, prompt_version, max(seen) AS seen_n, sum(sampled) AS sampled_n, "
        "sum(applicable) AS applicable_n, sum(scored) AS scored_n, sum(failed) AS failed_n, sum(sum) AS total"
        f"{more} {windows} GROUP BY start, metric, environment, model, prompt_version"
    )
