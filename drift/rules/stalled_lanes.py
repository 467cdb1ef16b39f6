"""Evaluate coverage while a lane writes nothing: traces that `fast` counted and no evaluator has a row of.

The lane's windows stay open, so that rows it writes later are evaluated in order. Until then, verdicts of revision 0
count the missing scores.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.leadership import Term
from ragtide.drift.rules import queries
from ragtide.drift.rules.evaluate import verdict_row
from ragtide.drift.rules.model import NO_RESULT, Rule, Series, Window
from ragtide.drift.rules.pooling import due
from ragtide.drift.rules.resolve import coverage_rule_for, is_coverage_metric
from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.drift.stats import HOUR_S
from ragtide.drift.windows import (
    FAST_LANE,
    MetricRef,
    Watermark,
    apps_condition,
    live_windows,
    select_traffic,
    traffic_metrics,
)
from ragtide.sinks.clickhouse.database import Database

_LOOKBACK_S = HOUR_S  # before the stop: evaluators that scored then were on; older missing windows add nothing


class _ExpectedRate(NamedTuple):
    """What an evaluator did with a series' traces while its lane ran."""

    fingerprint: str
    share: float  # of the traces, those that were applicable


class _Position(NamedTuple):
    """A lane's watermark, and since when it stands there."""

    at: datetime
    since: datetime


@dataclass(slots=True)
class StalledLanes:
    """Evaluate lanes whose watermark stands still; remembers since when, for one leader's term."""

    metrics: Mapping[str, MetricRef]
    settings: RuleSettings
    window_settings: WindowSettings
    term: Term
    _positions: dict[str, _Position] = field(default_factory=dict)

    def evaluate(
        self, database: Database, now: datetime, closing: Mapping[str, Watermark]
    ) -> dict[Series, tuple[Rule, ...]]:
        """Return the coverage rules of series without rows of a stalled lane. Their verdicts are stored on return."""
        rules: dict[Series, tuple[Rule, ...]] = {}
        for lane, watermark in closing.items():
            if lane != FAST_LANE and self._is_stalled(lane, watermark.at, now):
                rules |= self._evaluate_lane(database, lane, watermark.at, closing[FAST_LANE].at)
        return rules

    def _is_stalled(self, lane: str, at: datetime, now: datetime) -> bool:
        """Whether the watermark stands for twice as long as a stuck partition can hold it."""
        last_at, since = self._positions.get(lane, _Position(at, now))
        self._positions[lane] = _Position(at, since if last_at == at else now)
        wait = timedelta(seconds=self.window_settings.heartbeat_timeout_s + 2 * self.window_settings.stuck_wait_s)
        return last_at == at and now - since >= wait

    def _evaluate_lane(
        self, database: Database, lane: str, stopped_at: datetime, seen_until: datetime
    ) -> dict[Series, tuple[Rule, ...]]:
        base_s = self.window_settings.base_s
        until = int(seen_until.timestamp()) // base_s * base_s
        first = max(int(stopped_at.timestamp()) // base_s * base_s, until - _LOOKBACK_S)
        known = self._expected_rates(database, lane, int(stopped_at.timestamp()))
        missing = self._missing_windows(database, known, first, until)
        every = {series: coverage_rule_for(series, self.metrics[series.metric], self.settings) for series in missing}
        rules = {series: rule for series, rule in every.items() if rule is not None}
        if not rules:
            return {}
        changed = [queries.ChangedSeries(series, known[series].fingerprint, first) for series in rules]
        verdict_intervals = queries.judged_intervals(database, {rule.rule_id for rule in rules.values()}, changed)
        verdicts = []
        for series, rule in rules.items():
            fingerprint = known[series].fingerprint
            intervals = verdict_intervals.get((rule.rule_id, series, fingerprint), [])
            for window in due(missing[series], intervals, rule.min_sample, rule.kind.sample_size):
                result = rule.kind.evaluate(window, rule, series) or NO_RESULT
                verdicts.append(verdict_row(rule, series, fingerprint, window, result, self.term))
        database.insert("verdicts", verdicts)
        return {series: (rule,) for series, rule in rules.items()}

    def _expected_rates(self, database: Database, lane: str, stopped_at: int) -> dict[Series, _ExpectedRate]:
        """Load the lane's recent shares of applicable traces, by the series of its coverage rules."""
        names = [name for name, one in self.metrics.items() if one.evaluator.lane == lane and is_coverage_metric(one)]
        rows = database.rows(
            f"""
            SELECT app, environment, metric, model, argMax(fingerprint, start) AS newest,
                sum(applicable) / sum(seen) AS share
            FROM windows FINAL
            WHERE {live_windows(self.window_settings.base_s, names, stopped_at - _LOOKBACK_S, stopped_at)}
            GROUP BY app, environment, metric, model HAVING sum(applicable) > 0 AND sum(seen) > 0
            """
        )
        return {
            Series(row["app"], row["environment"], row["metric"], row["model"], "", ""): _ExpectedRate(
                row["newest"], min(row["share"], 1.0)
            )
            for row in rows
        }

    def _missing_windows(
        self, database: Database, known: Mapping[Series, _ExpectedRate], first: int, until: int
    ) -> dict[Series, list[Window]]:
        """Make the windows with traces and without any row, with the expected number of failed records."""
        if not known or first >= until:
            return {}
        apps = sorted({(series.app, series.environment) for series in known})
        traces = self._trace_counts(database, apps, first, until)
        written = self._windows_with_rows(database, known, first, until)
        missing: dict[Series, list[Window]] = {}
        for series, expected in known.items():
            total = 0
            for start, seen in traces.get((series.app, series.environment, series.model), ()):
                count = int((total + seen) * expected.share) - int(total * expected.share)
                total += seen
                if (series, start) not in written:
                    window = Window(
                        start, start + self.window_settings.base_s, seen=seen, applicable=count, failed=count
                    )
                    missing.setdefault(series, []).append(window)
        return missing

    def _trace_counts(
        self, database: Database, apps: Sequence[tuple[str, str]], first: int, until: int
    ) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
        """Load start and trace count of each window in order of time, by app, environment and model."""
        found: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        evaluators = {one.evaluator.id: one.evaluator for one in self.metrics.values()}
        for metrics in traffic_metrics(evaluators.values()):
            windows = f"{live_windows(self.window_settings.base_s, metrics, first, until)} AND {apps_condition(apps)}"
            for row in database.rows(f"{select_traffic(windows)} ORDER BY at"):
                key = (row["app"], row["environment"], row["model"])
                found.setdefault(key, []).append((row["at"], row["n"]))
            if found:
                break
        return found

    def _windows_with_rows(
        self, database: Database, known: Iterable[Series], first: int, until: int
    ) -> set[tuple[Series, int]]:
        """Find windows that have rows: the lane stopped inside them, or one partition is further."""
        metric_of = {self.metrics[series.metric].evaluator.id: series.metric for series in known}
        base_s = self.window_settings.base_s
        rows = database.rows(
            f"""
            SELECT DISTINCT app, environment, evaluator, model,
                toUInt32(intDiv(toUnixTimestamp(time), {base_s}) * {base_s}) AS start
            FROM scores WHERE run_id = 'live' AND evaluator IN {sql.texts(sorted(metric_of))} AND is_deleted = 0
                AND time >= {{first:DateTime64(3, 'UTC')}} AND time < {{until:DateTime64(3, 'UTC')}}
            """,
            {"first": datetime.fromtimestamp(first, UTC), "until": datetime.fromtimestamp(until, UTC)},
        )
        return {
            (Series(row["app"], row["environment"], metric_of[row["evaluator"]], row["model"], "", ""), row["start"])
            for row in rows
        }
