"""SQL of the fleet: every application with its health, what it does and what that costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.budget_sql import budgets_left
from ragtide.dashboards.owners import owner_sql
from ragtide.dashboards.quality_sql import Judge
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sql import FLEET, LOG_MIDDLE, TOTAL, TRAFFIC, Tables, among, words
from ragtide.dashboards.variable_sql import in_variable
from ragtide.drift.routes import Route
from ragtide.drift.settings import Objective
from ragtide.drift.windows import MetricRef

LATENCY, COST = "operations.latency_seconds", "operations.cost_usd"
HEALTH = {0: "no traffic", 1: "healthy", 2: "info", 3: "warning", 4: "critical"}  # numbers of the timeline
_KNOWN_DAYS = 7  # an application without traffic since then is forgotten
_POINTS = 120  # of the timeline
_ROLL_UP_S = 30  # after the watermark until windows are stored
_APPLICATIONS = 500
_TIMELINES = 40
# Of every application and of the system itself; the run is live or that of the problems' windows.
IS_PARENT = "parent_id = ''"
OPEN = f"state = 'open' AND opened_at <= $__toTime AND (environment = '' OR {in_variable('environment')})"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The queries; they rest on the rules, objectives and routes of the settings."""

    tables: Tables
    rule_lines: Sequence[RuleLine]
    metrics: Mapping[str, MetricRef]
    objectives: Sequence[Objective] = ()
    routes: Sequence[Route] = ()

    def applications(self) -> str:
        """One row per application and environment, the worst first; also those that only have problems."""
        parts = [self._known(), self._operations(), self._problems(), self._left()]
        if self.rule_lines:
            parts.append(self._quality())
        figures = " UNION ALL ".join(
            f"SELECT app, environment, figure.1 AS name, figure.2 AS value FROM ({part})" for part in parts
        )

        def of(name: str) -> str:
            return f"anyOrNullIf(value, name = '{name}')"

        counted = ", ".join(f"toUInt64(ifNull({of(name)}, 0)) AS {name}" for name in ("critical", "warning", "info"))
        state = (
            "multiIf(critical > 0, 'critical', warning > 0, 'warning', info > 0, 'info', "
            "isNull(traces), 'no traffic', 'healthy')"
        )
        return (
            f"{self._closed()}SELECT {state} AS state, app, environment, {counted}, "
            f"{of('per_minute')} AS `traces per minute`, "
            f"{of('errors')} AS errors, {of('latency')} AS `latency p95`, {of('cost')} AS `cost per hour`, "
            f"{of('quality')} AS `within limits`, toUInt64({of('watched')}) AS metrics, {of('coverage')} AS coverage, "
            f"{of('budget_left')} AS `budget left`, toUInt64({of('traces')}) AS traces, "
            f"toDateTime({of('opened')}) AS `last problem`, {owner_sql(self.routes, 'app')} AS owner, "
            "encodeURLComponent(environment) AS environment_value, "
            "if(app = '', '/d/ragtide-pipeline?', concat('/d/ragtide-application?var-app=', encodeURLComponent(app), "
            "'&var-environment=', encodeURLComponent(environment_value))) AS link "
            f"FROM ({figures}) GROUP BY app, environment HAVING countIf(name != 'budget_left') > 0 "
            "ORDER BY indexOf(['critical', 'warning', 'info', 'no traffic', 'healthy'], state), critical DESC, "
            "warning DESC, `budget left` NULLS LAST, `within limits` NULLS LAST, app, environment "
            f"LIMIT {_APPLICATIONS}"
        )

    def _known(self) -> str:
        """Applications of the last days, whether or not they sent anything in the time range."""
        largest = max(self.tables.sizes_s)
        return (
            f"SELECT app, environment, ('known', toFloat64(1)) AS figure FROM {self.tables.name('windows')} "
            f"WHERE {FLEET} AND {among([TRAFFIC])} AND {TOTAL} AND size_s = {largest} "
            f"AND start >= $__toTime - INTERVAL {_KNOWN_DAYS} DAY AND start <= $__toTime GROUP BY app, environment"
        )

    def _operations(self) -> str:
        """Traffic, errors, cost and latency, in one reading of their windows."""
        traffic, cost = f"metric = '{TRAFFIC}'", f"metric = '{COST}'"
        seen = (  # `seen` is the same for each fingerprint, so it is not summed
            "SELECT app, environment, metric, max(seen) AS seen_n, sum(sum) AS total, sum(scored) AS scored_n, "
            f"sumMapIf(bins, metric = '{LATENCY}') AS latencies {self._windows(among([TRAFFIC, COST, LATENCY]))} "
            "GROUP BY app, environment, metric, size_s, start, model, prompt_version"
        )
        sums = (
            f"SELECT app, environment, sumIf(seen_n, {traffic}) AS traces, sumIf(total, {traffic}) AS errors, "
            f"sumIf(scored_n, {traffic}) AS told, sumIf(total, {cost}) AS paid, sumIf(scored_n, {cost}) AS priced, "
            "sumMap(latencies) AS merged, "
            "arrayReduce('quantileExactWeighted(0.95)', mapKeys(merged), mapValues(merged)) AS bin "
            f"FROM ({seen}) GROUP BY app, environment"
        )
        minutes = self._minutes()
        return (
            f"SELECT app, environment, arrayJoin([('traces', toFloat64(traces)), ('per_minute', traces / {minutes}), "
            f"('cost', if(priced = 0, NULL, paid * 60 / {minutes})), ('errors', errors / nullIf(told, 0)), "
            f"('latency', if(empty(merged), NULL, {LOG_MIDDLE}))]) AS figure FROM ({sums})"
        )

    def _windows(self, metric: str, *, whole_hours: bool = False) -> str:
        """FROM and WHERE; the query begins with `_closed`."""
        names = {size: f"closed_{size}" for size in sorted(self.tables.sizes_s)[1:]}
        since = self.tables.rounded_start()
        return self.tables.covering(metric, FLEET, since=since, closed_until=names, whole_hours=whole_hours)

    def _closed(self) -> str:
        """WITH: until when larger windows are closed, by the metric that every application has; found once."""
        untils = self.tables.closed_until(among(self.tables.present[:1]), FLEET, since=self.tables.rounded_start())
        found = ", ".join(f"{until} AS closed_{size}" for size, until in untils.items())
        return f"WITH {found} " if found else ""

    def _minutes(self) -> str:
        end = "toUnixTimestamp(least($__toTime, now()))"
        return f"(greatest({end} - toUnixTimestamp({self.tables.rounded_start()}), 60) / 60)"

    def _problems(self) -> str:
        counted = ", ".join(
            f"('{one}', toFloat64(countIf(severity = '{one}')))" for one in ("critical", "warning", "info")
        )
        return (
            f"SELECT app, environment, arrayJoin([{counted}, ('opened', toFloat64(toUnixTimestamp(max(opened_at))))]) "
            f"AS figure FROM {self.tables.name('problems')} WHERE {OPEN} AND {self.tables.is_parent_in_app()} "
            "GROUP BY app, environment"
        )

    def _left(self) -> str:
        left = budgets_left(self.tables, self.objectives, self.metrics)
        return (
            f"SELECT app, environment, ('budget_left', min(budget_left)) AS figure FROM ({left}) "
            "GROUP BY app, environment"
        )

    def _quality(self) -> str:
        """Metrics within their limits, from one reading of their windows: several cost more than the bins of all."""
        judge = Judge(self.rule_lines)
        by_metric = (
            "SELECT app, environment, metric, sum(level_n) / nullIf(sum(told_n), 0) AS mean, "
            "sum(bad_n) / sum(scored) AS bad_share, sum(scored) AS scored_n, sum(applicable) AS applicable_n "
            f"{judge.windows(self._windows(among(judge.names), whole_hours=True))} WHERE scored > 0 "
            "GROUP BY app, environment, metric HAVING isNotNull(mean)"
        )
        return (
            f"SELECT app, environment, arrayJoin([('quality', toNullable(avg({judge.passes('mean', 'bad_share')}))), "
            "('watched', toFloat64(count())), ('coverage', sum(scored_n) / sum(applicable_n))]) AS figure "
            f"FROM ({by_metric}) GROUP BY app, environment"
        )

    def health(self) -> str:
        """A series per application and environment: the numbers of `HEALTH` over time, of the worst applications.

        The latest intervals, whose windows are not closed yet, are shown only where there is something to show.
        """
        step = f"greatest($__interval_s, intDiv(dateDiff('second', $__fromTime, $__toTime), {_POINTS}), 60)"
        first, last = "toUnixTimestamp($__fromTime)", "toUnixTimestamp(least($__toTime, now()))"
        opened = f"greatest(toUnixTimestamp(assumeNotNull(opened_at)), {first})"
        closed = f"least(toUnixTimestamp(ifNull(resolved_at, $__toTime)), {last})"
        problems = (
            f"SELECT app, environment, arrayJoin(range(intDiv({opened}, step), intDiv({closed}, step) + 1)) AS at, "
            "indexOf(['info', 'warning', 'critical'], severity) + 1 AS code "
            f"FROM {self.tables.name('problems')} WHERE state IN ('open', 'resolved') AND app != '' "
            f"AND opened_at <= $__toTime AND ifNull(resolved_at, $__toTime) >= $__fromTime "
            f"AND (environment = '' OR {in_variable('environment')}) AND {self.tables.is_parent_in_app()}"
        )
        traffic = (
            f"SELECT app, environment, intDiv(toUnixTimestamp(start), step) AS at, 1 AS code "
            f"FROM {self.tables.name('windows')} WHERE {FLEET} AND {among([TRAFFIC])} AND $__timeFilter(start) "
            f"AND {TOTAL} AND size_s = {self.tables.size_within('step')} AND seen > 0"
        )
        codes = (
            f"SELECT app, environment, at, max(code) AS code FROM ({problems} UNION ALL {traffic}) "
            "GROUP BY app, environment, at"
        )
        worst = (
            f"SELECT app, environment, mapFromArrays(groupArray(at), groupArray(code)) AS codes FROM ({codes}) "
            f"GROUP BY app, environment ORDER BY max(code) DESC, sum(code) DESC, app, environment LIMIT {_TIMELINES}"
        )
        return (
            f"WITH {step} AS step, (SELECT max(watermark) FROM {self.tables.name('watermarks')}) AS closed_until "
            "SELECT toDateTime(slot * step) AS time, "
            f"{words('app', 'environment')} AS application, codes[slot] AS health "
            f"FROM ({worst}) ARRAY JOIN range(intDiv({first}, step), intDiv({last}, step) + 1) AS slot "
            f"WHERE health > 0 OR (slot + 1) * step + {_ROLL_UP_S} <= toUnixTimestamp(closed_until) "
            "ORDER BY time, application"
        )

    def by_owner(self) -> str:
        """Open problems without their symptoms by owner: by severity, how many nobody took, and the oldest."""
        return (
            f"SELECT {owner_sql(self.routes, 'app', 'metric', 'type')} AS owner, "
            "countIf(severity = 'critical') AS critical, "
            "countIf(severity = 'warning') AS warning, countIf(severity = 'info') AS info, "
            f"countIf(acked_by = '' AND muted_by = '' AND NOT {self.tables.is_silenced()}) AS `not taken`, "
            "uniqExact(app) AS applications, "
            f"min(opened_at) AS oldest FROM {self.tables.name('problems')} WHERE {OPEN} AND {IS_PARENT} GROUP BY owner "
            "ORDER BY critical DESC, warning DESC, info DESC, owner LIMIT 100"
        )

    def open_problems(self) -> str:
        """Count open problems by severity, without their symptoms, and `applications` in trouble.

        An application is in trouble if it has a critical problem that is no symptom of another one of its own.
        """
        counted = ", ".join(
            f"countIf(severity = '{one}' AND {IS_PARENT}) AS {one}" for one in ("critical", "warning", "info")
        )
        in_trouble = f"severity = 'critical' AND app != '' AND {self.tables.is_parent_in_app()}"
        return (
            f"SELECT {counted}, uniqExactIf(app, {in_trouble}) AS applications "
            f"FROM {self.tables.name('problems')} WHERE {OPEN}"
        )

    def operations(self) -> str:
        """Return traces per minute and recorded cost per hour of all applications; NULL if there is none."""
        minutes, of_traffic, of_cost = self._minutes(), f"metric = '{TRAFFIC}'", f"metric = '{COST}'"
        read = (
            "SELECT metric, max(seen) AS seen_n, sum(scored) AS scored_n, sum(sum) AS total "
            f"{self._windows(among([TRAFFIC, COST]))} "
            "GROUP BY metric, app, environment, size_s, start, model, prompt_version"
        )
        return (
            f"{self._closed()}SELECT if(countIf({of_traffic}) = 0, NULL, sumIf(seen_n, {of_traffic}) / {minutes}) "
            f"AS traces, if(sumIf(scored_n, {of_cost}) = 0, NULL, sumIf(total, {of_cost}) * 60 / {minutes}) AS cost "
            f"FROM ({read})"
        )

    def lowest_budget(self) -> str:
        """The smallest share of an error budget that is left."""
        left = budgets_left(self.tables, self.objectives, self.metrics)
        return f"SELECT min(budget_left) AS left FROM ({left}) HAVING count() > 0 AND $__toTime > toDateTime(0)"

    def coverage(self) -> str:
        """Share of applicable records that were scored, over every watched metric of every application."""
        names = among([each.metric for each in self.rule_lines] or [TRAFFIC])
        covering = self._windows(names, whole_hours=True)
        return f"{self._closed()}SELECT sum(scored) / nullIf(sum(applicable), 0) AS coverage {covering}"

    def insights(self, trace_link: str) -> str:
        """Insights of every application whose period overlaps the time range, newest first."""
        return (
            "SELECT description, type, app, environment, period_end AS until, "
            "arrayStringConcat(actions, ' ') AS `what to do`, examples[1] AS `example trace`, "
            f"length(examples) AS `number of examples`, {trace_link} AS trace_link "
            f"FROM {self.tables.name('insights')} FINAL WHERE (environment = '' OR {in_variable('environment')}) "
            "AND period_start <= $__toTime AND period_end >= $__fromTime AND NOT withdrawn "
            "ORDER BY period_end DESC, insight_id LIMIT 50"
        )
