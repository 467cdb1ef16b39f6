"""Rules on error budgets that burn too fast: two per objective, one that pages and one that opens a ticket.

They compute what `ragtide.drift.checks.error_budget` computes, from the same windows, and go on without the check.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragtide.dashboards.alerting.labels import LabelColumns
from ragtide.dashboards.alerting.links import Links
from ragtide.dashboards.alerting.rule import Rule, title_of
from ragtide.dashboards.budget_sql import effective
from ragtide.dashboards.sql import Tables
from ragtide.dashboards.variable_sql import literal
from ragtide.drift.checks import FINE_S, MIN_BAD, BurnWindow, burn_windows, hour_s
from ragtide.drift.notify import alertname
from ragtide.drift.problems import OBJECTIVE, Kind, type_of
from ragtide.drift.rules import ROUNDING
from ragtide.drift.settings import Objective, RuleSettings, Severity, WindowSettings
from ragtide.drift.sql import array, text
from ragtide.drift.windows import FAST_LANE, MetricRef, bin_bounds, count_out_of_bounds

BURN = "burn-"  # start of the names of these rules
_KIND: Kind = "slo_burn"
_DAY_S = 86400
_LONGEST_TITLE, _LONGEST_NAME, _LONGEST_ENVIRONMENT = 80, 20, 8
_NAMES: Mapping[Severity, str] = {"critical": "page", "warning": "ticket"}


@dataclass(frozen=True, slots=True)
class BurnRules:
    """Rules of every enabled objective whose metric there is."""

    tables: Tables
    labels: LabelColumns
    links: Links
    rules: RuleSettings
    windows: WindowSettings
    metrics: Mapping[str, MetricRef]

    def all(self) -> Iterator[Rule]:
        """Yield the rules, by objective."""
        for objective, others in effective(self.rules.objectives, self.metrics):
            pairs = burn_windows(objective.period_days * _DAY_S, self.windows)
            for severity in dict.fromkeys(pair.severity for pair in pairs):
                of_severity = [pair for pair in pairs if pair.severity == severity]
                yield self._rule(objective, others, of_severity, severity)

    def _rule(
        self, objective: Objective, others: Sequence[str], pairs: Sequence[BurnWindow], severity: Severity
    ) -> Rule:
        of = "" if objective.app is None else f" of {objective.app}"
        rates = " or ".join(f"{one.rate:.3g} over {_length(one.long_s)} and {_length(one.short_s)}" for one in pairs)
        where = "{{ $labels.app }}{{ with $labels.environment }} ({{ . }}){{ end }}"
        speed = '{{ printf "%.3g" $values.A.Value }}'
        records = "{{ with $values.T }}{{ with .Labels.records }} on {{ . }} records{{ end }}{{ end }}"
        burn = {"burn": f"toFloat64({self._first(objective, pairs, _rate)})"}
        count = {"records": f"toString({self._first(objective, pairs, _records)})"}
        return Rule(
            name=f"{BURN}{_NAMES[severity]}-{objective.name}" + ("" if objective.app is None else f"-{objective.app}"),
            title=title_of(f"ragtide objective {objective.name}{of}: {_NAMES[severity]}"),
            sql=self._sql(objective, others, pairs, severity, burn),
            texts=self._sql(objective, others, pairs, severity, burn | count),
            limit=0,
            annotations={
                "title": _title(objective.name),
                "summary": f"{where}: objective {objective.name} burns too fast",
                "description": f"{where}: objective {objective.name} burns its error budget {speed} times as fast as "
                f"allowed{records}. Allowed: {(1 - objective.target) * 100:.3g} % bad records of {objective.metric} "
                f"within {objective.period_days} days. This alert is for a rate of {rates}.\n"
                "To do: find out when the bad records began, and roll back the newest change before that.",
                **self.links.of_budget(_KIND),
            },
            for_s=0,
            lookback_s=max(one.long_s for one in pairs) + _DAY_S,
        )

    def _sql(
        self,
        objective: Objective,
        others: Sequence[str],
        pairs: Sequence[BurnWindow],
        severity: Severity,
        columns: Mapping[str, str],
    ) -> str:
        """One row per application and environment, with these columns."""
        metric = self.metrics[objective.metric]
        given = {
            "problem": text(alertname(_KIND)),
            "app": "u.app",
            "environment": "u.environment",
            "severity": text(severity),
            "type": text(type_of(metric, _KIND)),
            "metric": literal(objective.metric),
            "evaluator": literal(metric.evaluator.id),
            "segment": literal(f"{OBJECTIVE}={objective.name}"),
        }
        lengths = sorted({length for one in pairs for length in (one.long_s, one.short_s)})
        use = f"({self._use(objective, others, metric, lengths)}) AS u"
        return f"{self.labels.select(given, columns, use)} ORDER BY app, environment"

    def _first(self, objective: Objective, pairs: Sequence[BurnWindow], figure: Callable[[Objective, int], str]) -> str:
        """Write a figure of the long window of the first pair that is exceeded; 0: none is."""
        cases = ", ".join(f"{self._burns(objective, one)}, {figure(objective, one.long_s)}" for one in pairs)
        return f"multiIf({cases}, 0)"

    def _burns(self, objective: Objective, pair: BurnWindow) -> str:
        """Write the condition that both windows of the pair burn so fast, on enough records."""
        own = {app: self.rules.of(app).min_sample for app in self.rules.apps}
        least = str(self.rules.min_sample)
        if own:
            apps, counts = array(map(literal, own), "String"), array(map(str, own.values()), "UInt64")
            least = f"transform(u.app, {apps}, {counts}, toUInt64({least}))"
        both = f"least({_rate(objective, pair.long_s)}, {_rate(objective, pair.short_s)})"
        return (
            f"u.n{pair.long_s} >= {least} AND u.wrong{pair.long_s} >= {MIN_BAD} "
            f"AND {both} >= {pair.rate * (1 - ROUNDING)!r}"
        )

    def _use(self, objective: Objective, others: Sequence[str], metric: MetricRef, lengths: Sequence[int]) -> str:
        """Records and bad ones of each length, from base windows and, beyond six hours, whole ones of an hour."""
        base_s, long_s = self.windows.base_s, hour_s(self.windows)
        running = f"intDiv(until, {long_s}) * {long_s}"
        within = {
            length: f"size_s = {base_s} AND at >= until - {length}"
            if length <= FINE_S
            else f"(size_s = {long_s} AND at >= until - {length} AND at < {running}) "
            f"OR (size_s = {base_s} AND at >= {running})"
            for length in lengths
        }
        sums = ", ".join(f"sumIf(scored, {one}) AS n{s}, sumIf(wrong, {one}) AS wrong{s}" for s, one in within.items())
        bad = count_out_of_bounds(*bin_bounds(metric.scale, *objective.bounds(metric.metric)))
        scope = "" if objective.app is None else f" AND app = {literal(objective.app)}"
        if others:
            scope += f" AND NOT has({array(map(literal, others), 'String')}, app)"
        recent = f"least(until - {min(max(lengths), FINE_S)}, {running})"
        sizes = f"(size_s = {base_s} AND start >= toDateTime({recent}, 'UTC'))"
        if max(lengths) > FINE_S:
            sizes += f" OR (size_s = {long_s} AND start >= toDateTime(until - {max(lengths)}, 'UTC'))"
        return (
            f"WITH {self._until(metric)} AS until SELECT app, environment, {sums} FROM ("
            f"SELECT app, environment, size_s, toUnixTimestamp(start) AS at, scored, {bad} AS wrong "
            f"FROM {self.tables.name('windows')} FINAL WHERE run_id = 'live' AND metric = {text(objective.metric)} "
            f"AND segment = ''{scope} AND ({sizes}) AND start < toDateTime(until, 'UTC')) GROUP BY app, environment"
        )

    def _until(self, metric: MetricRef) -> str:
        """Write the end of the last base window that is closed, in Unix seconds; 0: none is."""
        lanes = sorted({FAST_LANE, metric.evaluator.lane})
        marks = (
            f"SELECT lane, topic, max(watermark) AS mark FROM {self.tables.name('watermarks')} "
            f"WHERE lane IN ({', '.join(map(text, lanes))}) GROUP BY lane, topic"
        )
        base_s = self.windows.base_s
        return (
            f"(SELECT if(uniqExact(lane) = {len(lanes)}, "
            f"intDiv(toInt64(toUnixTimestamp(toDateTime(min(mark), 'UTC'))), {base_s}) * {base_s}, 0) FROM ({marks}))"
        )


def _rate(objective: Objective, length: int) -> str:
    """Write the burn rate: the share of bad records over the share that is allowed; 0 without records."""
    return f"if(u.n{length} = 0, 0, u.wrong{length} / u.n{length} / {1 - objective.target!r})"


def _records(_objective: Objective, length: int) -> str:
    return f"u.n{length}"


def _title(name: str) -> str:
    """Write a template of at most 80 characters up to 99999 times the rate; names are cut to what is left for them."""
    shown = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    rest = len(" (): objective  burn rate 99999.9") + _LONGEST_ENVIRONMENT
    where = (
        f'{{{{ printf "%.{_LONGEST_TITLE - rest - len(shown)}s" $labels.app }}}}'
        f'{{{{ with $labels.environment }}}} ({{{{ printf "%.{_LONGEST_ENVIRONMENT}s" . }}}}){{{{ end }}}}'
    )
    return f'{where}: objective {shown} burn rate {{{{ printf "%.1f" $values.A.Value }}}}'


def _length(seconds: int) -> str:
    if seconds >= 2 * _DAY_S:
        return f"{seconds / _DAY_S:.3g} days"
    return f"{seconds / 3600:.3g} h" if seconds >= 3600 else f"{seconds / 60:.3g} min"
