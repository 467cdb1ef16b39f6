"""Backtest rules on the live windows of an interval, as they are stored now.

Windows are evaluated when they end. Events and episodes stay in memory; nothing is written."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.array_types import Integers
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.leadership import Term
from ragtide.drift.problems import Details, EventRow, Problem, build_details, evidence, fold_events, rule_lifecycle
from ragtide.drift.rules import (
    ChangedSeries,
    Rule,
    Series,
    Verdict,
    VersionStart,
    Window,
    evaluate_window,
    is_stale,
    load_windows,
    pool_forward,
    rules_for,
    series_in_interval,
    verdict_row,
)
from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.drift.stats import HOUR_S
from ragtide.drift.windows import MetricRef, SegmentValues, load_segment_values
from ragtide.sinks.clickhouse.database import Database


@dataclass(slots=True)
class VerdictHistory:
    """Verdicts in order of time; remembers the last `max_verdicts` good and bad ones.

    `first` is the start of the first one. Totals count from `since` on, the start of the current breach, if there is
    one; `breach_count` is the number of breaches since then.
    """

    max_verdicts: int
    first: datetime
    since: datetime | None = None
    _good: deque[Verdict] = field(init=False)
    _bad: deque[Verdict] = field(init=False)
    breach_count: int = 0
    _samples: int = 0
    _bad_records: int = 0
    _baseline: float | None = None

    def __post_init__(self) -> None:
        self._good = deque(maxlen=self.max_verdicts + evidence.BASELINE_INTERVALS)
        self._bad = deque(maxlen=self.max_verdicts)

    def add(self, verdict: Verdict) -> None:
        """Add the next verdict."""
        (self._bad if verdict.breached else self._good).append(verdict)
        if self.since is not None and verdict.start >= self.since:
            self.breach_count += verdict.breached
            self._samples += verdict.samples
            self._bad_records += verdict.wrong

    def count_from(self, since: datetime) -> None:
        """Count verdicts from then on, remembered ones included."""
        if since == self.since:
            return
        self.since = since
        counted = [verdict for verdict in (*self._good, *self._bad) if verdict.start >= since]
        self.breach_count = sum(verdict.breached for verdict in counted)
        self._samples = sum(verdict.samples for verdict in counted)
        self._bad_records = sum(verdict.wrong for verdict in counted)
        before = [verdict for verdict in self._good if verdict.end <= since][-evidence.BASELINE_INTERVALS :]
        total = sum(verdict.samples for verdict in before)
        self._baseline = sum(verdict.value * verdict.samples for verdict in before) / total if before else None

    def totals(self) -> evidence.VerdictTotals:
        """Return the totals since then; closed windows have all their records."""
        return evidence.VerdictTotals(self._samples, self._bad_records, 0, self._baseline)

    def recent(self, at: datetime) -> Sequence[Verdict]:
        """Return recent verdicts in order of time, as the jobs read them at that instant."""
        recent = [*list(self._good)[-self.max_verdicts :], *self._bad]
        return sorted(
            (one for one in recent if one.end > at - rule_lifecycle.VERDICT_HORIZON), key=lambda verdict: verdict.start
        )


class RuleEvidence(NamedTuple):
    """The evidence of an event: bad verdicts, the start of the breach, and the totals since then."""

    bad_verdicts: tuple[Verdict, ...]
    since: datetime
    totals: evidence.VerdictTotals


@dataclass(slots=True)
class RuleSimulation:
    """Simulates one rule on one series: the events that the jobs would write, at the ends of windows.

    By episode: `evidence` is the last one reported, `breach_counts` the number of intervals that breached.
    """

    series: Series
    rule: Rule
    settings: RuleSettings
    episodes: Sequence[Problem] = ()
    evidence: dict[int, RuleEvidence] = field(default_factory=dict)
    breach_counts: dict[int, int] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    _histories: dict[str, VerdictHistory] = field(default_factory=dict)
    _since: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether time alone may change something."""
        return bool(self.episodes) and self.episodes[-1].state in ("pending", "open")

    def observe(self, at: datetime, verdicts: Sequence[Verdict]) -> None:
        """Process the verdicts of windows that ended at that instant.

        Instants come in order of time; those without a verdict matter only while the problem `is_open`.
        """
        for verdict in verdicts:
            if verdict.samples >= self.rule.min_sample:
                self._history(verdict).add(verdict)
        if not self._histories or not (self.is_open or any(verdict.breached for verdict in verdicts)):
            return  # good windows change nothing while no problem is open
        recent = {
            VersionStart(history.first.timestamp(), name): last
            for name, history in self._histories.items()
            if (last := history.recent(at))
        }
        event = rule_lifecycle.next_event(
            self.series, self.rule, recent, self.episodes, self.settings, at, at, self._details, epoch=0
        )
        if event is None and self.is_open:
            event = rule_lifecycle.flap_timeout_event(self.episodes[-1], self.settings, at, epoch=0)
        if event is not None:
            self._apply(event)
        if self.is_open:
            episode = self.episodes[-1].episode
            self.breach_counts[episode] = self._histories[
                self.evidence[episode].bad_verdicts[-1].fingerprint
            ].breach_count

    @property
    def reported_until(self) -> datetime:
        """The end of the evidence that was last reported of the open problem."""
        return rule_lifecycle.reported_until(self.episodes[-1].by_kind[self.rule.kind.problem_kind])

    def mark_stale(self, at: datetime) -> None:
        """End the open problem of a series that is stale at that instant."""
        problem, kind = self.episodes[-1], self.rule.kind.problem_kind
        step = rule_lifecycle.series_gone(kind, problem, self.settings.of(self.series.app), at, at)
        event = (
            rule_lifecycle.flap_timeout_event(problem, self.settings, at, epoch=0)
            if step is None
            else rule_lifecycle.end_event(problem, kind, step, epoch=0)
        )
        if event is not None:
            self._apply(event)

    def _history(self, verdict: Verdict) -> VerdictHistory:
        if verdict.fingerprint not in self._histories:
            self._histories[verdict.fingerprint] = VerdictHistory(
                rule_lifecycle.verdicts_needed([self.rule]), verdict.start, self._since
            )
        return self._histories[verdict.fingerprint]

    def _details(self, series: Series, rule: Rule, step: rule_lifecycle.RuleTransition) -> Details:
        """Return details without a message; messages are written once, at the end."""
        self._since = step.since
        for history in self._histories.values():
            history.count_from(step.since)
        self.evidence[step.transition.episode] = RuleEvidence(
            step.breaching, step.since, self._histories[step.breaching[-1].fingerprint].totals()
        )
        span = {
            "since": step.since.isoformat(),
            "until": step.until.isoformat(),
            "revision": step.breaching[-1].revision,
        }
        key = rule_lifecycle.key_of_series(series, rule)
        return build_details(
            rule.kind.problem_kind, key, rule.metric_ref, "", span, self.settings, rule_id=rule.rule_id
        )

    def _apply(self, event: EventRow) -> None:
        """Apply an event. An update replaces the one before, since only the last one is reported."""
        if event.event == "updated" and self.events[-1].event == "updated":
            self.events.pop()
        self.events.append(event)
        if event.event == "withdrawn":
            self.events = [one for one in self.events if one.episode != event.episode]
        self.episodes = fold_events(self.events)


class _RecordTimes(NamedTuple):
    """Starts of base windows with records, ascending: of an application's metric, and of each of its series."""

    metric: Integers
    series: Mapping[Series, Integers]


@dataclass(slots=True)
class LastSeenHistory:
    """Tells when series last had data: base windows of [first, end), read once for each metric of an application."""

    database: Database
    base_s: int
    first: int
    end: int
    _known: dict[tuple[str, str], _RecordTimes] = field(default_factory=dict)

    def is_stale(self, series: Series, reported_until: datetime, at: datetime, after: timedelta) -> bool:
        """Tell whether the jobs would have found the series stale, whose problem was last reported until then."""
        if at - reported_until < after:
            return False
        key = (series.app, series.metric)
        if key not in self._known:
            self._known[key] = self._read(*key)
        came = self._known[key]
        nothing = np.empty(0, np.int64)
        own = self._last_seen(came.series.get(series, nothing), at, reported_until)
        return is_stale(own, self._last_seen(came.metric, at, own), at, after, rule_lifecycle.VERDICT_HORIZON)

    def _last_seen(self, starts: Integers, at: datetime, not_before: datetime) -> datetime:
        """Return the start of the last of these windows that had ended, `not_before` if that is later."""
        ended = int(np.searchsorted(starts, at.timestamp() - self.base_s, side="right"))
        return max(not_before, datetime.fromtimestamp(int(starts[ended - 1]), UTC)) if ended else not_before

    def _read(self, app: str, metric: str) -> _RecordTimes:
        rows = self.database.rows(
            f"SELECT {', '.join(Series._fields)}, arraySort(groupUniqArray(toUnixTimestamp(start))) AS starts "
            f"FROM windows WHERE run_id = 'live' AND app = {sql.text(app)} AND metric = {sql.text(metric)} "
            f"AND size_s = {self.base_s} AND applicable > 0 AND start >= toDateTime({self.first}, 'UTC') "
            f"AND start < toDateTime({self.end}, 'UTC') GROUP BY {', '.join(Series._fields)}"
        )
        found = {Series(*(row[name] for name in Series._fields)): np.array(row["starts"], np.int64) for row in rows}
        whole = np.unique(np.concatenate(list(found.values()))) if found else np.empty(0, np.int64)
        return _RecordTimes(whole, found)


_SERIES_PER_BATCH = 200  # more only if one metric has more
_INTERVAL_S = 6 * HOUR_S  # of windows in memory at a time


def simulate_rules(
    database: Database,
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    windows: WindowSettings,
    first: datetime,
    until: datetime,
) -> list[SimulatedProblem]:
    """Simulate rules on windows inside [first, until), in order of opening; nothing is written.

    Earlier windows and operator actions are ignored. Deleted traces cannot be counted: severity then follows from the
    share of the records in verdicts.
    """
    base_s = windows.base_s
    start = max(-(-int(first.timestamp()) // base_s) * base_s, 0)
    end = int(until.timestamp()) // base_s * base_s
    segments = load_segment_values(database, windows)
    last_seen = LastSeenHistory(database, base_s, start, end)
    found: list[SimulatedProblem] = []
    for some in _batches(series_in_interval(database, metrics, base_s, start, end)):
        simulations = _simulations(some, metrics, rules)
        watched = [one for one in some if one.series in simulations]
        begin = min((one.changed_from for one in watched), default=end)
        for at in range(begin, end, _INTERVAL_S):
            until_s = min(at + _INTERVAL_S, end)
            by_series = load_windows(database, metrics, base_s, at, watched, 0, until_s)
            for simulation in (simulation for several in simulations.values() for simulation in several):
                simulation.advance(database, segments, last_seen, by_series, range(at + base_s, until_s + 1, base_s))
        found += [
            problem
            for several in simulations.values()
            for simulation in several
            for problem in _simulated_problems(database, simulation.simulation)
        ]
    return sorted(found, key=lambda one: (one.openings[0], one.problem_id))


@dataclass(slots=True)
class _SeriesSimulation:
    """One rule on one series, and by fingerprint the windows that wait to be pooled."""

    simulation: RuleSimulation
    fingerprints: list[str]
    term: Term
    _unpooled: dict[str, list[Window]] = field(default_factory=dict)

    def advance(
        self,
        database: Database,
        segments: SegmentValues,
        last_seen: LastSeenHistory,
        by_series: Mapping[tuple[Series, str], Sequence[Window]],
        instants: range,
    ) -> None:
        """Evaluate what pools end at these instants, and apply the verdicts."""
        judged: dict[int, list[Verdict]] = {}
        series, rule = self.simulation.series, self.simulation.rule
        for fingerprint in self.fingerprints:
            for window in self._pool(fingerprint, by_series.get((series, fingerprint), ())):
                found = evaluate_window(database, rule, series, segments, window)
                verdict = verdict_row(rule, series, fingerprint, window, found, self.term)
                judged.setdefault(window.end, []).append(verdict)
        for instant in instants:
            at = datetime.fromtimestamp(instant, UTC)
            if instant not in judged and self.simulation.is_open and self._is_stale(last_seen, at):
                self.simulation.mark_stale(at)
            elif instant in judged or self.simulation.is_open:
                self.simulation.observe(at, judged.get(instant, ()))

    def _is_stale(self, last_seen: LastSeenHistory, at: datetime) -> bool:
        simulation = self.simulation
        after = timedelta(seconds=simulation.settings.of(simulation.series.app).stale_after_s)
        return last_seen.is_stale(simulation.series, simulation.reported_until, at, after)

    def _pool(self, fingerprint: str, windows: Sequence[Window]) -> list[Window]:
        rule = self.simulation.rule
        pending = [*self._unpooled.get(fingerprint, ()), *windows]
        pooled = list(pool_forward(pending, rule.min_sample, rule.kind.sample_size))
        end = pooled[-1].end if pooled else 0
        self._unpooled[fingerprint] = [window for window in pending if window.start >= end]
        return pooled


def _batches(touched: Sequence[ChangedSeries]) -> Iterator[list[ChangedSeries]]:
    """Batch series whose windows are read together: all series of a metric of an application."""
    some: list[ChangedSeries] = []
    for _, alike in groupby(touched, key=lambda one: one.series[:3]):
        some += alike
        if len(some) >= _SERIES_PER_BATCH:
            yield some
            some = []
    if some:
        yield some


def _simulations(
    touched: Sequence[ChangedSeries], metrics: Mapping[str, MetricRef], settings: RuleSettings
) -> dict[Series, list[_SeriesSimulation]]:
    fingerprints: dict[Series, list[str]] = {}
    for one in touched:
        fingerprints.setdefault(one.series, []).append(one.fingerprint)
    term = Term(0, datetime.fromtimestamp(0, UTC))  # its verdicts are not stored
    found = {}
    for series, own in fingerprints.items():
        rules: tuple[Rule, ...] = rules_for(series, metrics[series.metric], settings)
        if rules:
            found[series] = [_SeriesSimulation(RuleSimulation(series, rule, settings), own, term) for rule in rules]
    return found


def _simulated_problems(database: Database, simulation: RuleSimulation) -> Iterator[SimulatedProblem]:
    for episode in simulation.episodes:
        if episode.openings:
            yield _simulated_problem(database, simulation, episode, simulation.evidence[episode.episode])


def _simulated_problem(
    database: Database, simulation: RuleSimulation, episode: Problem, problem: RuleEvidence
) -> SimulatedProblem:
    series, rule = simulation.series, simulation.rule
    figures = evidence.statistics(database, series, rule, problem.bad_verdicts, problem.since, problem.totals)
    figures = figures if figures.traffic else replace(figures, traffic=figures.samples)
    details = rule_lifecycle.build_rule_details(series, rule, figures, problem.since, simulation.settings, {})
    own = [event for event in simulation.events if event.episode == episode.episode]
    return SimulatedProblem(
        problem_id=episode.problem_id,
        episode=episode.episode,
        state=episode.state,
        aspect=episode.aspect,
        rule=rule.kind.name,
        severity=details.severity,
        description=details.description,
        windows=simulation.breach_counts[episode.episode],
        since=problem.since,
        openings=[event.at for event in own if event.event in ("opened", "reopened")],
        resolved_at=episode.resolved_at,
        **series._asdict(),
    )
