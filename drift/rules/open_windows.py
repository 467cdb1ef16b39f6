"""Rule `any` on windows that are still open: a leak stored now is a problem at the next look, not a window later.

What is said of an open window is a verdict of revision 0; the window's own verdict takes its place once it closed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from drift.cursors import INGEST_OVERLAP
from drift.leadership import Term
from drift.rules import stored
from drift.rules.choose import loosest_any_rules, rule_for
from drift.rules.judging import judgement, verdict_of
from drift.rules.series import NOTHING, Judgement, Rule, Series, Verdict, Window
from drift.settings import RuleSettings, WindowSettings
from drift.windows import sql
from drift.windows.beyond import is_beyond
from drift.windows.contents import base_contents
from drift.windows.metrics import WatchedMetric
from drift.windows.scope import WindowKey, listed
from drift.windows.segments import SegmentValues
from drift.windows.watermark import Watermark
from sinks.clickhouse.database import Database
from sinks.rows import LIVE

_FIRST_LOOK = timedelta(days=1)


class _Subject(NamedTuple):
    """What a verdict on one window speaks of."""

    rule_id: str
    series: Series
    fingerprint: str
    start: int

    @property
    def window(self) -> WindowKey:
        return WindowKey(LIVE, self.series.app, self.series.environment, self.start)


@dataclass(slots=True)
class OpenWindows:
    """Remembers, for one leader's term, what was said of windows that were open."""

    metrics: Mapping[str, WatchedMetric]
    settings: RuleSettings
    window_settings: WindowSettings
    term: Term
    _said: dict[_Subject, Judgement] | None = None
    _looked_at: datetime | None = None
    _loosest: list[Rule] = field(init=False)

    def __post_init__(self) -> None:
        self._loosest = loosest_any_rules(self.metrics, self.settings)

    def judge(
        self, database: Database, now: datetime, closing: Mapping[str, Watermark], segments: SegmentValues
    ) -> dict[Series, tuple[Rule, ...]]:
        """The rules of series with a bad record in an open window; their verdicts are stored when this returns.

        To be asked after closed windows were judged: of a window that closed nothing more is said here, but that it
        holds nothing any more.
        """
        if not self._loosest:
            return {}
        before = self._stored(database, now) if self._said is None else self._said
        gone, said, verdicts = dict(before), {}, []
        rules: dict[Series, tuple[Rule, ...]] = {}
        windows = self._leaking(database, now, closing) | {subject.window for subject in before}
        for (series, fingerprint), found in self._contents(database, windows, segments).items():
            rule = rule_for(series, self.metrics[series.metric], self.settings)
            if rule is None or rule.kind != "any":
                continue
            for window in found:
                subject = _Subject(rule.rule_id, series, fingerprint, window.start)
                last = gone.pop(subject, None)
                if self._is_closed(subject, closing):
                    continue
                judged = judgement(database, rule, series, segments, window) or NOTHING
                if last is None and not judged.breached:
                    continue
                if judged != last:
                    verdicts.append(verdict_of(rule, series, fingerprint, window, judged, self.term))
                said[subject], rules[series] = judged, (rule,)
        verdicts += self._cleared(gone)
        database.insert("verdicts", verdicts)
        self._said, self._looked_at = said, now
        return rules

    def _cleared(self, gone: Iterable[_Subject]) -> Iterable[Verdict]:
        """Neither good nor bad: the records were taken out, or a rule that is no more spoke of them."""
        for subject in gone:
            rule = rule_for(subject.series, self.metrics[subject.series.metric], self.settings)
            if rule is not None and rule.rule_id == subject.rule_id:
                window = Window(subject.start, subject.start + self.window_settings.base_s)
                yield verdict_of(rule, subject.series, subject.fingerprint, window, NOTHING, self.term)

    def _is_closed(self, subject: _Subject, closing: Mapping[str, Watermark]) -> bool:
        watermark = closing.get(self.metrics[subject.series.metric].evaluator.lane)
        return watermark is not None and subject.start + self.window_settings.base_s <= watermark.at.timestamp()

    def _leaking(self, database: Database, now: datetime, closing: Mapping[str, Watermark]) -> set[WindowKey]:
        """Open windows into which a record that may be bad was stored since the last look."""
        base_s = self.window_settings.base_s
        suspects = []
        for rule in self._loosest:
            evaluator, key = rule.watched.evaluator, sql.text(rule.watched.metric.key)
            opened = closing[evaluator.lane].at if evaluator.lane in closing else now - _FIRST_LOOK
            suspects.append(
                f"(evaluator = {sql.text(evaluator.id)} "
                f"AND time >= toDateTime64({int(opened.timestamp()) // base_s * base_s}, 3, 'UTC') "
                f"AND mapContains(metrics, {key}) "
                f"AND {is_beyond(f'metrics[{key}]', rule.watched.scale, rule.least, rule.greatest)})"
            )
        rows = database.rows(
            f"SELECT DISTINCT app, environment, toUInt32(intDiv(toUnixTimestamp(time), {base_s}) * {base_s}) AS start "
            "FROM scores WHERE run_id = 'live' AND status = 'scored' AND is_deleted = 0 "
            "AND ingested_at >= {since:DateTime64(3, 'UTC')} "
            f"AND ({' OR '.join(suspects)})",
            {"since": now - _FIRST_LOOK if self._looked_at is None else self._looked_at - INGEST_OVERLAP},
        )
        return {WindowKey(LIVE, row["app"], row["environment"], row["start"]) for row in rows}

    def _contents(
        self, database: Database, windows: Iterable[WindowKey], segments: SegmentValues
    ) -> dict[tuple[Series, str], list[Window]]:
        watched = {rule.watched.evaluator.id for rule in self._loosest}
        metrics = {name: metric for name, metric in self.metrics.items() if metric.evaluator.id in watched}
        others = sorted({metric.evaluator.id for metric in self.metrics.values()} - watched)
        found: dict[tuple[Series, str], list[Window]] = {}
        cut = segments.alike(windows)
        base_s = self.window_settings.base_s
        for values, scope in [(values, scope) for values, alike in cut for scope in listed(alike, base_s, others)]:
            contents = base_contents(scope, metrics, values, revised=False)
            names = [rule.watched.name for rule in self._loosest]
            for key, open_ in stored.open_windows(database, contents, names, base_s).items():
                found.setdefault(key, []).extend(open_)
        return found

    def _stored(self, database: Database, now: datetime) -> dict[_Subject, Judgement]:
        """What an earlier leader said of windows whose own verdicts did not come yet."""
        rows = database.rows(
            f"SELECT {', '.join(Verdict._fields)} FROM verdicts FINAL WHERE startsWith(rule_id, 'any:') "
            "AND run_id = 'live' AND revision = 0 AND samples > 0 AND start >= {since:DateTime64(3, 'UTC')}",
            {"since": now - _FIRST_LOOK},
        )
        verdicts = [Verdict(**row) for row in rows if row["metric"] in self.metrics]
        return {
            _Subject(one.rule_id, one.series, one.fingerprint, int(one.start.timestamp())): Judgement(
                one.value, one.threshold, bool(one.breached), one.samples, one.wrong
            )
            for one in verdicts
        }
