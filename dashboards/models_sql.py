"""SQL that compares models and prompt versions: quality, failures, cost and latency, each with its records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.fleet_sql import COST, LATENCY
from ragtide.dashboards.interval_sql import mean_interval
from ragtide.dashboards.metric_scale import CHOSEN, EVALUATOR, KEY
from ragtide.dashboards.metric_sql import METRIC
from ragtide.dashboards.quality_sql import Judge
from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sql import HERE, LOG_MIDDLE, TRAFFIC, Tables, among, words
from ragtide.drift.rootcause import CONTEXTS_ARE_BAD, context_metrics, select_context_results
from ragtide.drift.sql import array, text
from ragtide.drift.windows import MetricRef

_TRACES = 20_000  # of the newest ones that failures are counted among
_ROWS = 500
_BY = "model, prompt_version"
NAME = words("if(model = '', 'no model', model)", "prompt_version")
FAILURES = ("pass", "retrieval", "generation", "unknown", "parse")


@dataclass(frozen=True, slots=True)
class Models:
    """The queries; quality rests on the lines of the rules."""

    tables: Tables
    rule_lines: Sequence[RuleLine]
    metrics: Mapping[str, MetricRef]

    @property
    def domains(self) -> dict[str, list[str]]:
        """Primary metrics of records and of windows, by their evaluator's domain."""
        found: dict[str, list[str]] = {}
        for name, one in sorted(self.metrics.items()):
            if one.metric.primary and not one.metric.per:
                found.setdefault(one.evaluator.domain, []).append(name)
        return dict(sorted(found.items()))

    @property
    def judged_domains(self) -> dict[str, list[str]]:
        """Those of them that have a line between good and bad records."""
        lined = {each.metric for each in self.rule_lines}
        found = {domain: [name for name in names if name in lined] for domain, names in self.domains.items()}
        return {domain: names for domain, names in found.items() if names}

    def leaderboard(self, condition: str) -> str:
        """One row per metric, model and prompt version, the best first; the condition chooses the metrics.

        Against the best: whether the 95 % intervals of both overlap.
        """
        low, high = self._interval()
        low, high = self._interval()
        order = f"mean_value * {self._direction()} DESC, n DESC, {_BY}"
        ranked = (
            f"SELECT *, {low} AS low, {high} AS high, "
            f"row_number() OVER (PARTITION BY metric ORDER BY {order}) AS place FROM ({self._by_model(condition)})"
        )
        best = "OVER (PARTITION BY metric ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"
        with_best = (
            f"SELECT *, first_value(low) {best} AS best_low, first_value(high) {best} AS best_high FROM ({ranked})"
        )
        against = (
            "multiIf(place = 1, 'best', isNull(low) OR isNull(best_low), 'not known', "
            "low <= best_high AND high >= best_low, 'no clear difference', 'worse')"
        )
        return (
            f"SELECT metric, place, model, prompt_version AS `prompt version`, mean_value AS mean, low AS `at least`, "
            f"high AS `at most`, {against} AS `against the best`, "
            "if(isNull(line), NULL, 1 - bad_share) AS `good traces`, scored_n AS traces, "
            f"scored_n / nullIf(applicable_n, 0) AS `of applicable` FROM ({with_best}) "
            f"ORDER BY metric, place LIMIT {_ROWS}"
        )

    def chosen(self) -> str:
        """The leaderboard of the metric that the variable names."""
        return self.leaderboard(METRIC)

    def good_by_metric(self) -> str:
        """One row per metric, model and prompt version: the share of good traces; a column's name has its traces."""
        names = [each.metric for each in self.rule_lines]
        traces = (
            f"SELECT {_BY}, sum(seen_n) AS traces FROM (SELECT {_BY}, max(seen) AS seen_n "
            f"{self.tables.covering(among([TRAFFIC]))} GROUP BY {_BY}, size_s, start, environment) GROUP BY {_BY}"
        )
        return (
            f"SELECT metric, concat({NAME}, ' (', toString(traces), ' traces)') AS model_name, {self._good()} AS good "
            f"FROM ({self._by_model(among(names or [TRAFFIC]))}) AS judged "
            f"LEFT JOIN ({traces}) AS served USING ({_BY}) "
            f"ORDER BY metric, traces DESC, model_name LIMIT {_ROWS * 4}"
        )

    def at_a_glance(self) -> str:
        """One row per model and prompt version: good traces by domain, errors, latency, cost, traces."""
        parts = [self._traffic(), self._latency(), self._cost()]
        if self.judged_domains:
            parts.append(self._by_domain())
        figures = " UNION ALL ".join(
            f"SELECT {_BY}, figure.1 AS name, figure.2 AS value FROM ({part})" for part in parts
        )

        def of(name: str) -> str:
            return f"anyOrNullIf(value, name = '{name}')"

        domains = "".join(f"{of(f'domain {domain}')} AS `{domain}`, " for domain in self.judged_domains)
        return (
            f"SELECT model, prompt_version AS `prompt version`, toUInt64({of('traces')}) AS traces, {domains}"
            f"{of('errors')} AS errors, {of('median')} AS `latency median`, {of('p95')} AS `latency p95`, "
            f"{of('cost')} AS `cost per trace` FROM ({figures}) GROUP BY {_BY} "
            f"ORDER BY traces DESC NULLS LAST, {_BY} LIMIT {_ROWS}"
        )

    def beside(self, column: str) -> str:
        """Points: the cost per trace, or the median latency, and the share of good traces of the chosen metric."""
        part, name = (self._cost(), "cost") if column.startswith("cost") else (self._latency(), "median")
        other = f"SELECT {_BY}, figure.2 AS other FROM ({part}) WHERE figure.1 = '{name}'"
        return (
            f"SELECT {NAME} AS model_name, other AS `{column}`, {self._good()} AS `good traces` "
            f"FROM ({self._by_model(METRIC)}) AS judged INNER JOIN ({other}) AS used USING ({_BY}) "
            f"WHERE isNotNull(`good traces`) AND isNotNull(other) ORDER BY model_name LIMIT {_ROWS}"
        )

    def failures(self, *, shares: bool) -> str:
        """One row per model and prompt version: newest traces that pass the chosen metric, or fail it and why.

        As `ragtide.drift.checks.failure_rates` counts causes: bad contexts (retrieval), good ones (generation), not
        known, and traces that the evaluator could not read (parse).
        """
        newest = (
            f"SELECT time FROM {self.tables.name('scores')} WHERE {HERE} AND evaluator = {EVALUATOR} "
            f"AND $__timeFilter(time) ORDER BY time DESC LIMIT {_TRACES}"
        )
        within = f"{HERE} AND $__timeFilter(time) AND time >= (SELECT min(time) FROM ({newest}))"
        judge, judging = Judge(self.rule_lines, CHOSEN), context_metrics(self.metrics)
        own = (
            f"SELECT trace_id, model, prompt_version, status, metrics[{KEY}] AS score, "
            f"{judge.line} AS line, {judge.sign} AS sign "
            f"FROM {self.tables.name('scores')} FINAL WHERE {within} AND evaluator = {EVALUATOR} "
            f"AND (status = 'failed' OR (status = 'scored' AND mapContains(metrics, {KEY}))) AND isNotNull(line)"
        )
        contexts = "SELECT '' AS trace_id, 0 AS are_bad WHERE 0"
        if judging:
            rows = select_context_results(judging, within, self.tables.name("scores"))
            contexts = f"SELECT trace_id, {CONTEXTS_ARE_BAD} AS are_bad FROM ({rows}) GROUP BY trace_id"
        retrieval = array(
            (text(name) for name, one in self.metrics.items() if one.evaluator.domain == "retrieval"), "String"
        )
        outcome = (
            "multiIf(status = 'failed', 'parse', (score - line) * sign >= 0, 'pass', "
            f"has({retrieval}, {CHOSEN}), 'retrieval', judged.trace_id = '', 'unknown', "
            "are_bad, 'retrieval', 'generation')"
        )
        counted = (
            f"SELECT {NAME} AS model_name, {outcome} AS outcome FROM ({own}) AS own "
            f"LEFT JOIN ({contexts}) AS judged ON own.trace_id = judged.trace_id"
        )
        by = " / count()" if shares else ""
        columns = ", ".join(f"countIf(outcome = '{one}'){by} AS `{one}`" for one in FAILURES)
        return (
            f"SELECT model_name AS model, {columns}, count() AS traces FROM ({counted}) GROUP BY model "
            "ORDER BY traces DESC, model LIMIT 30"
        )

    def _by_model(self, condition: str) -> str:
        judge = Judge(self.rule_lines)
        return (
            f"SELECT metric, {_BY}, sum(level_n) / nullIf(sum(told_n), 0) AS mean_value, sum(told_n) AS n, "
            "sum(sum_squares) AS squares, sum(bad_n) / nullIf(sum(scored), 0) AS bad_share, sum(scored) AS scored_n, "
            f"sum(applicable) AS applicable_n, {judge.line} AS line {judge.windows(self.tables.covering(condition))} "
            f"GROUP BY metric, {_BY} HAVING n > 0"
        )

    def _good(self) -> str:
        """The share of good records; of a number of whole windows from 0 to 1 their mean; NULL without a line."""
        return f"multiIf(isNull(line), NULL, {Judge(self.rule_lines).own}, mean_value, 1 - bad_share)"

    def _interval(self) -> tuple[str, str]:
        own, unit = Judge(self.rule_lines).own, self._from_0_to_1()
        low, high = mean_interval("mean_value", "n", "squares")
        return (
            f"multiIf({own}, NULL, {unit} AND {low} < 0, 0, {low})",
            f"multiIf({own}, NULL, {unit} AND {high} > 1, 1, {high})",
        )

    def _from_0_to_1(self) -> str:
        names = (name for name, one in self.metrics.items() if (one.metric.low, one.metric.high) == (0.0, 1.0))
        return f"has({array(map(text, names), 'String')}, metric)"

    def _direction(self) -> str:
        """1 where higher values are better, else -1."""
        names = (name for name, one in self.metrics.items() if one.metric.better == "lower")
        return f"if(has({array(map(text, names), 'String')}, metric), -1, 1)"

    def _traffic(self) -> str:
        seen = (
            f"SELECT {_BY}, max(seen) AS seen_n, sum(sum) AS total, sum(scored) AS scored_n "
            f"{self.tables.covering(among([TRAFFIC]))} GROUP BY {_BY}, size_s, start, environment"
        )
        return (
            f"SELECT {_BY}, arrayJoin([('traces', toFloat64(sum(seen_n))), "
            f"('errors', sum(total) / nullIf(sum(scored_n), 0))]) AS figure FROM ({seen}) GROUP BY {_BY}"
        )

    def _latency(self) -> str:
        merged = f"SELECT {_BY}, sumMap(bins) AS merged {self.tables.covering(among([LATENCY]))} GROUP BY {_BY}"
        bins = f"SELECT {_BY}, arrayJoin(mapKeys(merged)) AS bin, merged[bin] AS n FROM ({merged})"
        found = (
            f"SELECT {_BY}, quantilesExactWeighted(0.5, 0.95)({LOG_MIDDLE}, n) AS found FROM ({bins}) GROUP BY {_BY}"
        )
        pairs = "arrayJoin([('median', toNullable(found[1])), ('p95', toNullable(found[2]))])"
        return f"SELECT {_BY}, {pairs} AS figure FROM ({found})"

    def _cost(self) -> str:
        return (
            f"SELECT {_BY}, ('cost', sum(sum) / nullIf(sum(scored), 0)) AS figure "
            f"{self.tables.covering(among([COST]))} GROUP BY {_BY}"
        )

    def _by_domain(self) -> str:
        found = {name: domain for domain, names in self.judged_domains.items() for name in names}
        domain = (
            f"transform(toString(metric), [{', '.join(map(text, found))}], "
            f"[{', '.join(text(f'domain {one}') for one in found.values())}], '')"
        )
        return (
            f"SELECT {_BY}, ({domain} AS name, avg({self._good()})) AS figure "
            f"FROM ({self._by_model(among(found))}) GROUP BY {_BY}, name"
        )
