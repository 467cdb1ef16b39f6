"""Evaluate rules of zero tolerance on open windows, so that a leak opens a problem in the next cycle.

The verdict on an open window has revision 0. The verdict on the closed window replaces it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.cursors import INGEST_OVERLAP
from ragtide.drift.leadership import Term
from ragtide.drift.rules import queries
from ragtide.drift.rules.evaluate import evaluate_window, verdict_row
from ragtide.drift.rules.kinds import RULE_KINDS
from ragtide.drift.rules.model import NO_RESULT, Rule, RuleResult, Series, Verdict, Window
from ragtide.drift.rules.resolve import any_rule_prefilter, rule_for
from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.drift.windows import MetricRef, SegmentValues, Watermark, WindowKey, base_contents, is_out_of_bounds
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

_FIRST_LOOKBACK = timedelta(days=1)


class _VerdictKey(NamedTuple):
    """The rule, the series and the window of a verdict."""

    rule_id: str
    series: Series
    fingerprint: str
    start: int

    @property
    def window(self) -> WindowKey:
        return WindowKey(LIVE, self.series.app, self.series.environment, self.start)


@dataclass(slots=True)
class OpenWindows:
    """Evaluate open windows; remembers its verdicts on them for one leader's term."""

    metrics: Mapping[str, MetricRef]
    settings: RuleSettings
    window_settings: WindowSettings
    term: Term
    _results: dict[_VerdictKey, RuleResult] | None = None
    _last_run: datetime | None = None
    _prefilter: list[Rule] = field(init=False)

    def __post_init__(self) -> None:
        self._prefilter = any_rule_prefilter(self.metrics, self.settings)

    def evaluate(
        self, database: Database, now: datetime, closing: Mapping[str, Watermark], segments: SegmentValues
    ) -> dict[Series, tuple[Rule, ...]]:
        """Return the rules of series with a bad record in an open window. Their verdicts are stored on return.

        Call it after closed windows were evaluated: a window that closed gets no verdict here.
        """
        if not self._prefilter:
            return {}
        before = self._load_results(database, now) if self._results is None else self._results
        retracted, results, verdicts = dict(before), {}, []
        rules: dict[Series, tuple[Rule, ...]] = {}
        windows = self._suspect_windows(database, now, closing) | {key.window for key in before}
        for (series, fingerprint), found in self._contents(database, windows, segments).items():
            rule = rule_for(series, self.metrics[series.metric], self.settings)
            if rule is None or not rule.kind.zero_tolerance:
                continue
            for window in found:
                key = _VerdictKey(rule.rule_id, series, fingerprint, window.start)
                last = retracted.pop(key, None)
                if self._is_closed(key, closing):
                    continue
                result = evaluate_window(database, rule, series, segments, window)
                if last is None and not result.breached:
                    continue
                if result != last:
                    verdicts.append(verdict_row(rule, series, fingerprint, window, result, self.term))
                results[key], rules[series] = result, (rule,)
        verdicts += self._retracted(retracted)
        database.insert("verdicts", verdicts)
        self._results, self._last_run = results, now
        return rules

    def _retracted(self, retracted: Iterable[_VerdictKey]) -> Iterable[Verdict]:
        """Make verdicts of no samples for windows whose records were deleted or moved."""
        for key in retracted:
            rule = rule_for(key.series, self.metrics[key.series.metric], self.settings)
            if rule is not None and rule.rule_id == key.rule_id:
                window = Window(key.start, key.start + self.window_settings.base_s)
                yield verdict_row(rule, key.series, key.fingerprint, window, NO_RESULT, self.term)

    def _is_closed(self, key: _VerdictKey, closing: Mapping[str, Watermark]) -> bool:
        watermark = closing.get(self.metrics[key.series.metric].evaluator.lane)
        return watermark is not None and key.start + self.window_settings.base_s <= watermark.at.timestamp()

    def _suspect_windows(self, database: Database, now: datetime, closing: Mapping[str, Watermark]) -> set[WindowKey]:
        """Find open windows into which a possibly bad record was stored since the last run."""
        base_s = self.window_settings.base_s
        suspects = []
        for rule in self._prefilter:
            evaluator, key = rule.metric_ref.evaluator, sql.text(rule.metric_ref.metric.key)
            opened = closing[evaluator.lane].at if evaluator.lane in closing else now - _FIRST_LOOKBACK
            suspects.append(
                f"(evaluator = {sql.text(evaluator.id)} "
                f"AND time >= toDateTime64({int(opened.timestamp()) // base_s * base_s}, 3, 'UTC') "
                f"AND mapContains(metrics, {key}) "
                f"AND {is_out_of_bounds(f'metrics[{key}]', rule.metric_ref.scale, rule.min, rule.max)})"
            )
        rows = database.rows(
            f"SELECT DISTINCT app, environment, toUInt32(intDiv(toUnixTimestamp(time), {base_s}) * {base_s}) AS start "
            "FROM scores WHERE run_id = 'live' AND status = 'scored' AND is_deleted = 0 "
            "AND ingested_at >= {since:DateTime64(3, 'UTC')} "
            f"AND ({' OR '.join(suspects)})",
            {"since": now - _FIRST_LOOKBACK if self._last_run is None else self._last_run - INGEST_OVERLAP},
        )
        return {WindowKey(LIVE, row["app"], row["environment"], row["start"]) for row in rows}

    def _contents(
        self, database: Database, windows: Iterable[WindowKey], segments: SegmentValues
    ) -> dict[tuple[Series, str], list[Window]]:
        watched = {rule.metric_ref.evaluator.id for rule in self._prefilter}
        metrics = {name: metric for name, metric in self.metrics.items() if metric.evaluator.id in watched}
        others = sorted({metric.evaluator.id for metric in self.metrics.values()} - watched)
        found: dict[tuple[Series, str], list[Window]] = {}
        names = [rule.metric_ref.name for rule in self._prefilter]
        base_s = self.window_settings.base_s
        for values, scope in segments.batch_scopes(windows, base_s, others):
            contents = base_contents(scope, metrics, values, revised=False)
            for key, open_ in queries.load_open_windows(database, contents, names, base_s).items():
                found.setdefault(key, []).extend(open_)
        return found

    def _load_results(self, database: Database, now: datetime) -> dict[_VerdictKey, RuleResult]:
        """Load an earlier leader's verdicts on windows that have no verdict of their own yet."""
        ids = " OR ".join(f"startsWith(rule_id, '{kind.name}:')" for kind in RULE_KINDS.values() if kind.zero_tolerance)
        rows = database.rows(
            f"SELECT {', '.join(Verdict._fields)} FROM verdicts FINAL WHERE ({ids}) "
            "AND run_id = 'live' AND revision = 0 AND samples > 0 AND start >= {since:DateTime64(3, 'UTC')}",
            {"since": now - _FIRST_LOOKBACK},
        )
        verdicts = [Verdict(**row) for row in rows if row["metric"] in self.metrics]
        return {
            _VerdictKey(one.rule_id, one.series, one.fingerprint, int(one.start.timestamp())): RuleResult(
                one.value, one.threshold, bool(one.breached), one.samples, one.wrong
            )
            for one in verdicts
        }
