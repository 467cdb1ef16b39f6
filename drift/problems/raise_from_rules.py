"""Turn verdicts into problem events: each once, whichever leader runs and however often."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, get_args

from ragtide.drift import cursors, sql
from ragtide.drift.leadership import Term
from ragtide.drift.problems import evidence
from ragtide.drift.problems.backlog import Backlog, Clock, next_timeout
from ragtide.drift.problems.kinds import Aspect
from ragtide.drift.problems.model import EventRow, Problem, State, problem_id
from ragtide.drift.problems.report import Details
from ragtide.drift.problems.rule_lifecycle import (
    KIND_BY_ASPECT,
    VERDICT_HORIZON,
    RuleTransition,
    aspect_of,
    build_rule_details,
    end_event,
    flap_timeout_event,
    key_of_series,
    next_event,
    reported_until,
    series_gone,
    verdicts_needed,
)
from ragtide.drift.problems.store import load_events, load_problems
from ragtide.drift.rules import (
    Rule,
    Series,
    Statistics,
    Verdict,
    VersionStart,
    coverage_rule_for,
    rule_cursor,
    rule_for,
    stale_series,
)
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows import MetricRef, SegmentValues
from ragtide.sinks.clickhouse.database import Database

_CURSOR = "problems"  # the version of verdicts up to which every interval has had its step
_BACKLOGS_PER_QUERY = 50  # series: a day has 1,440 verdicts of each; their events are stored together


class _BacklogSeries(NamedTuple):
    """A rule on a series that has several steps to take."""

    problem_id: str
    series: Series
    rule: Rule
    clock: Clock


class _CurrentEvents(NamedTuple):
    """The events of series with at most one new verdict, and the other series."""

    events: Sequence[EventRow]
    backlogs: Sequence[_BacklogSeries]


@dataclass(frozen=True, slots=True)
class Raiser:
    """Raises problems for one leader's term."""

    database: Database
    metrics: Mapping[str, MetricRef]
    settings: RuleSettings
    segments: SegmentValues
    term: Term
    base_s: float

    def run(
        self,
        rules: Mapping[Series, tuple[Rule, ...]],
        now: datetime,
        watermarks: Mapping[str, datetime],
        stored_until: Mapping[str, datetime],
    ) -> list[EventRow]:
        """Store and return the events that follow from the verdicts of these series, and of those with a problem.

        Both are by lane: windows are stored up to the watermark, or less where a backlog takes several runs.
        """
        clocks = {lane: Clock.of(now, at, stored_until[lane], self.base_s) for lane, at in watermarks.items()}
        with self.term.problem_lock:
            position = self.term.next_version()  # verdicts that are stored by now are older
            cursor = cursors.load(self.database, _CURSOR) or rule_cursor(self.database)
            found = self._events(rules, now, clocks, cursor)
            self.database.insert("problem_events", found.events)
            events = [*found.events]
            for at in range(0, len(found.backlogs), _BACKLOGS_PER_QUERY):
                more = self._backlog_events(found.backlogs[at : at + _BACKLOGS_PER_QUERY], now, cursor)
                self.database.insert("problem_events", more)
                events += more
            if rules:
                cursors.save(self.database, _CURSOR, position)
        return events

    def _events(
        self,
        rules: Mapping[Series, tuple[Rule, ...]],
        now: datetime,
        clocks: Mapping[str, Clock],
        cursor: int,
    ) -> "_CurrentEvents":
        watched = {(series, aspect_of(rule)): rule for series, found in rules.items() for rule in found}
        unresolved = load_problems(self.database, states=("pending", "open"), every_episode=True)
        found: list[EventRow | None] = []
        closed = min((clock.closed_until for clock in clocks.values()), default=now)
        date = min((clock.now for clock in clocks.values()), default=now)
        stale = self._stale(unresolved, closed)
        for problem in unresolved:
            kind = KIND_BY_ASPECT.get(problem.aspect)
            if kind is None:
                continue
            series = _series(problem)
            rule = self._rule(series, problem.aspect)
            if rule is not None and series not in stale:
                watched.setdefault((series, aspect_of(rule)), rule)
                continue
            if rule is not None:
                watched.pop((series, aspect_of(rule)), None)
            step = series_gone(kind, problem, self.settings.of(problem.app), date, closed)
            if step is not None:
                found.append(end_event(problem, kind, step, self.term.epoch))
        verdicts = self._verdicts(watched, now)
        episodes = self._episodes(watched, verdicts, unresolved)
        backlogs: list[_BacklogSeries] = []
        for (series, _), rule in watched.items():
            id_ = problem_id(*key_of_series(series, rule))
            known = sorted(episodes.get(id_, ()), key=lambda e: e.episode)
            clock = clocks.get(rule.metric_ref.evaluator.lane) or Clock.of(now, now, now, self.base_s)
            judged = verdicts.get((rule.rule_id, series), {})
            if self._has_backlog(rule, series, judged, known, clock, cursor):
                backlogs.append(_BacklogSeries(id_, series, rule, clock))
                continue
            common = (series, rule, judged, known, self.settings, clock.now, clock.closed_until)
            found.append(next_event(*common, self._details, self.term.epoch))
        told = {event.problem_id for event in found if event is not None} | {one.problem_id for one in backlogs}
        found += [
            flap_timeout_event(problem, self.settings, date, self.term.epoch)
            for problem in unresolved
            if problem.problem_id not in told
        ]
        return _CurrentEvents([event for event in found if event is not None], backlogs)

    def _episodes(
        self,
        watched: Mapping[tuple[Series, Aspect], Rule],
        verdicts: Mapping[tuple[str, Series], Mapping[VersionStart, Sequence[Verdict]]],
        unresolved: Iterable[Problem],
    ) -> dict[str, list[Problem]]:
        """Load the episodes, by problem id, of unresolved problems and of those that a bad verdict may raise."""
        ids = {problem.problem_id for problem in unresolved}
        for (series, _), rule in watched.items():
            judged = verdicts.get((rule.rule_id, series), {})
            if any(verdict.breached for of_one in judged.values() for verdict in of_one):
                ids.add(problem_id(*key_of_series(series, rule)))
        found: dict[str, list[Problem]] = {}
        known = load_problems(self.database, states=get_args(State), ids=ids, every_episode=True) if ids else ()
        for problem in known:
            found.setdefault(problem.problem_id, []).append(problem)
        return found

    def _stale(self, unresolved: Iterable[Problem], closed: datetime) -> set[Series]:
        states = ((problem, problem.by_kind.get(KIND_BY_ASPECT.get(problem.aspect, ""))) for problem in unresolved)
        told = {
            _series(problem): reported_until(kind_state) for problem, kind_state in states if kind_state is not None
        }
        return stale_series(self.database, told, closed, self._stale_after, VERDICT_HORIZON)

    def _stale_after(self, app: str) -> timedelta:
        return timedelta(seconds=self.settings.of(app).stale_after_s)

    def _rule(self, series: Series, aspect: str) -> Rule | None:
        metric = self.metrics.get(series.metric)
        if metric is None:
            return None
        choose = coverage_rule_for if aspect == "coverage" else rule_for
        return choose(series, metric, self.settings)

    def _has_backlog(
        self,
        rule: Rule,
        series: Series,
        verdicts: Mapping[VersionStart, Sequence[Verdict]],
        episodes: Sequence[Problem],
        clock: Clock,
        cursor: int,
    ) -> bool:
        """Whether steps before the current one may change something: by new verdicts, or by quiet alone."""
        last = episodes[-1] if episodes else None
        own = [verdict for of_one in verdicts.values() for verdict in of_one]
        fresh = [verdict for verdict in own if verdict.version > cursor]
        if any(one.end <= clock.current_from for one in fresh) and (
            any(one.breached for one in fresh) or (last is not None and last.state != "resolved")
        ):
            return True
        last_breach_end = max((one.end for one in own if one.breached), default=None)
        timeout = next_timeout(rule, last, last_breach_end, self.settings.of(series.app), clock)
        return timeout is not None and timeout <= clock.current_from

    def _backlog_events(self, some: Sequence["_BacklogSeries"], now: datetime, cursor: int) -> list[EventRow]:
        """The events of series with several new verdicts."""
        watched = {(one.series, aspect_of(one.rule)): one.rule for one in some}
        verdicts = self._verdicts(watched, now, cursor)
        rows: dict[str, list[EventRow]] = {}
        for row in load_events(self.database, ids={one.problem_id for one in some}):
            rows.setdefault(row.problem_id, []).append(row)
        limit = verdicts_needed(watched.values())
        found: list[EventRow] = []
        for one in some:
            judged = verdicts.get((one.rule.rule_id, one.series), {})
            fresh = {end for of_one in judged.values() for end in _new_ends(of_one, cursor)}
            common = (self.settings, one.clock, limit, self._details, self.term.epoch)
            found += Backlog(one.series, one.rule, rows.get(one.problem_id, ()), *common).events(judged, fresh)
        return found

    def _verdicts(
        self, watched: Mapping[tuple[Series, Aspect], Rule], now: datetime, new_since: int | None = None
    ) -> dict[tuple[str, Series], dict[VersionStart, list[Verdict]]]:
        """Load the last good and bad verdicts of each rule, series and fingerprint, in order of time.

        As many of each as the rules need without a gap. With `new_since`, as many of those up to this
        version, and every newer one.
        """
        if not watched:
            return {}
        limit = verdicts_needed(watched.values())
        pairs = {(series.app, series.environment, series.metric) for series, _ in watched}
        listed = ", ".join(f"({', '.join(sql.text(part) for part in pair)})" for pair in sorted(pairs))
        key = f"rule_id, {', '.join(Series._fields)}, fingerprint"
        chosen = f"ORDER BY start DESC LIMIT {limit} BY {key}, breached"
        if new_since is not None:
            places = ", ".join(f"({', '.join(sql.text(part) for part in series)})" for series, _ in watched)
            by_age = f"PARTITION BY {key}, breached, version > {new_since} ORDER BY start DESC"
            chosen = f"""WHERE ({", ".join(Series._fields)}) IN ({places})
                QUALIFY version > {new_since} OR row_number() OVER ({by_age}) <= {limit} ORDER BY start DESC"""
        rows = self.database.rows(
            f"""
            SELECT {", ".join(Verdict._fields)}, first_start FROM (
                SELECT {", ".join(Verdict._fields)}, min(start) OVER (PARTITION BY {key}) AS first_start
                FROM verdicts FINAL
                WHERE run_id = 'live' AND samples > 0
                    AND rule_id IN {sql.texts(sorted({rule.rule_id for rule in watched.values()}))}
                    AND (app, environment, metric) IN ({listed}) AND end > {{remembered:DateTime64(3, 'UTC')}}
            )
            {chosen}
            """,
            {"remembered": now - VERDICT_HORIZON},
        )
        found: dict[tuple[str, Series], dict[VersionStart, list[Verdict]]] = {}
        for row in reversed(rows):
            verdict = Verdict(**{name: row[name] for name in Verdict._fields})
            begun = VersionStart(row["first_start"].timestamp(), verdict.fingerprint)
            found.setdefault((verdict.rule_id, verdict.series), {}).setdefault(begun, []).append(verdict)
        return found

    def _details(self, series: Series, rule: Rule, step: RuleTransition) -> Details:
        judged = evidence.verdict_totals(self.database, series, rule, step.breaching, step.since, step.until)
        statistics = evidence.statistics(self.database, series, rule, step.breaching, step.since, judged)
        examples = evidence.examples(self.database, series, rule, self.segments, step.since, step.until)
        attributes = self._attributes(series, rule, statistics, step)
        return build_rule_details(series, rule, statistics, step.since, self.settings, attributes, examples)

    def _attributes(self, series: Series, rule: Rule, statistics: Statistics, step: RuleTransition) -> dict[str, Any]:
        newest = step.breaching[-1]
        return {
            "rule": rule.kind.name,
            "window": {"start": newest.start.isoformat(), "end": newest.end.isoformat()},
            "window_value": newest.value,
            "value": statistics.value,
            "baseline": statistics.baseline,
            "threshold": newest.threshold,
            "min": rule.min,
            "max": rule.max,
            "limit": rule.limit if rule.kind.value_type == "share" else None,
            "sample_size": statistics.samples,
            "wrong": statistics.bad,
            "traffic": statistics.traffic,
            "effect_size": statistics.effect_size,
            "reasons": list(statistics.reasons),
            "fingerprint": newest.fingerprint,
            "prompt_versions": list(evidence.prompt_versions(self.database, series, step.since, step.until)),
            "since": step.since.isoformat(),
            "until": step.until.isoformat(),
            "revision": newest.revision,
            "incomplete": any(v.incomplete for v in step.breaching),
        }


def _new_ends(verdicts: Sequence[Verdict], cursor: int) -> Iterator[datetime]:
    """The ends of the new verdicts after the last one that is not: a late revision in between is no new step."""
    until = max((one.end for one in verdicts if one.version <= cursor), default=None)
    return (one.end for one in verdicts if one.version > cursor and (until is None or one.end > until))


def _series(problem: Problem) -> Series:
    return Series(
        problem.app, problem.environment, problem.metric, problem.model, problem.segment, problem.segment_value
    )
