"""Tries rules on the live windows of a time: each is judged as it is stored now, at the moment at which it ended."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from drift.dry_run.comings import Comings
from drift.dry_run.course import Course, Told
from drift.dry_run.would_be import WouldBe
from drift.leadership import Term
from drift.problems import facts
from drift.problems.following import account_under
from drift.problems.problem import Problem
from drift.rules import stored
from drift.rules.choose import rules_for
from drift.rules.judging import judgement, samples_of, verdict_of
from drift.rules.pooling import pools
from drift.rules.series import NOTHING, Rule, Series, Verdict, Window
from drift.settings import RuleSettings, WindowSettings
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import SegmentValues, known_segment_values
from sinks.clickhouse.database import Database

_SERIES = 200  # that are looked at together, and more only where one metric has more
_STRETCH_S = 6 * 3600  # of which windows are held at a time


def dry_run(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    windows: WindowSettings,
    first: datetime,
    until: datetime,
) -> list[WouldBe]:
    """What these rules would have raised on windows inside [first, until), in order of opening; nothing is written.

    Nothing is known of the time before, and no person's word. Of a trace that is deleted already nobody can tell that
    it was there: severity is then by the share of the records that were judged.
    """
    base_s = windows.base_s
    start = max(-(-int(first.timestamp()) // base_s) * base_s, 0)
    end = int(until.timestamp()) // base_s * base_s
    segments = known_segment_values(database, windows)
    comings = Comings(database, base_s, start, end)
    found: list[WouldBe] = []
    for some in _together(stored.series_in(database, metrics, base_s, start, end)):
        watches = _watches(some, metrics, rules)
        watched = [one for one in some if one.series in watches]
        begin = min((one.changed_from for one in watched), default=end)
        for at in range(begin, end, _STRETCH_S):
            until_s = min(at + _STRETCH_S, end)
            held = stored.windows(database, metrics, base_s, at, watched, 0, until_s)
            for watch in (watch for several in watches.values() for watch in several):
                watch.pass_through(database, segments, comings, held, range(at + base_s, until_s + 1, base_s))
        found += [told for several in watches.values() for watch in several for told in _told(database, watch.course)]
    return sorted(found, key=lambda one: (one.openings[0], one.problem_id))


@dataclass(slots=True)
class _Watch:
    """One rule's look at one series; by fingerprint the windows that wait to be pooled."""

    course: Course
    fingerprints: list[str]
    term: Term
    _waiting: dict[str, list[Window]] = field(default_factory=dict)

    def pass_through(
        self,
        database: Database,
        segments: SegmentValues,
        comings: Comings,
        held: Mapping[tuple[Series, str], Sequence[Window]],
        moments: range,
    ) -> None:
        """Judges what pools end at these moments, and lets them take their course."""
        judged: dict[int, list[Verdict]] = {}
        series, rule = self.course.series, self.course.rule
        for fingerprint in self.fingerprints:
            for window in self._pooled(fingerprint, held.get((series, fingerprint), ())):
                found = judgement(database, rule, series, segments, window) or NOTHING
                verdict = verdict_of(rule, series, fingerprint, window, found, self.term)
                judged.setdefault(window.end, []).append(verdict)
        for moment in moments:
            at = datetime.fromtimestamp(moment, UTC)
            if moment not in judged and self.course.is_going and self._is_given_up(comings, at):
                self.course.give_up(at)
            elif moment in judged or self.course.is_going:
                self.course.close(at, judged.get(moment, ()))

    def _is_given_up(self, comings: Comings, at: datetime) -> bool:
        course = self.course
        after = timedelta(seconds=course.settings.of(course.series.app).gone_after_s)
        return comings.given_up(course.series, course.told_until, at, after)

    def _pooled(self, fingerprint: str, windows: Sequence[Window]) -> list[Window]:
        rule = self.course.rule
        waiting = [*self._waiting.get(fingerprint, ()), *windows]
        pooled = list(pools(waiting, rule.min_sample, samples_of(rule)))
        end = pooled[-1].end if pooled else 0
        self._waiting[fingerprint] = [window for window in waiting if window.start >= end]
        return pooled


def _together(touched: Sequence[stored.Touched]) -> Iterator[list[stored.Touched]]:
    """Series whose windows are read at once; all those of an app's metric, which share its part of the table."""
    some: list[stored.Touched] = []
    for _, alike in groupby(touched, key=lambda one: one.series[:3]):
        some += alike
        if len(some) >= _SERIES:
            yield some
            some = []
    if some:
        yield some


def _watches(
    touched: Sequence[stored.Touched], metrics: Mapping[str, WatchedMetric], settings: RuleSettings
) -> dict[Series, list[_Watch]]:
    fingerprints: dict[Series, list[str]] = {}
    for one in touched:
        fingerprints.setdefault(one.series, []).append(one.fingerprint)
    term = Term(0, datetime.fromtimestamp(0, UTC))  # of nobody: its verdicts are stored nowhere
    found = {}
    for series, own in fingerprints.items():
        rules: tuple[Rule, ...] = rules_for(series, metrics[series.metric], settings)
        if rules:
            found[series] = [_Watch(Course(series, rule, settings), own, term) for rule in rules]
    return found


def _told(database: Database, course: Course) -> Iterator[WouldBe]:
    for episode in course.episodes:
        if episode.openings:
            yield _would_be(database, course, episode, course.told[episode.episode])


def _would_be(database: Database, course: Course, episode: Problem, told: Told) -> WouldBe:
    series, rule = course.series, course.rule
    figures = facts.figures(database, series, rule, told.stretch, told.since, told.judged)
    figures = figures if figures.traffic else replace(figures, traffic=figures.samples)
    said = account_under(series, rule, figures, told.since, course.settings, {})
    own = [event for event in course.events if event.episode == episode.episode]
    return WouldBe(
        problem_id=episode.problem_id,
        episode=episode.episode,
        state=episode.state,
        aspect=episode.aspect,
        rule=rule.kind,
        severity=said.severity,
        description=said.description,
        windows=course.windows[episode.episode],
        since=told.since,
        openings=[event.at for event in own if event.event in ("opened", "reopened")],
        resolved_at=episode.resolved_at,
        **series._asdict(),
    )
