"""Turns verdicts into problem events: each happening once, whoever leads and however often it runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from ragtide.drift import sql
from ragtide.drift.leadership import Term
from ragtide.drift.problems import evidence
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
from ragtide.drift.problems.store import load_problems
from ragtide.drift.rules.evaluator_versions import VersionStart
from ragtide.drift.rules.model import Rule, Series, Statistics, Verdict
from ragtide.drift.rules.queries import stale_series
from ragtide.drift.rules.resolve import coverage_rule_for, rule_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class Raiser:
    """Raises problems for one leader's term."""

    database: Database
    metrics: Mapping[str, MetricRef]
    settings: RuleSettings
    segments: SegmentValues
    term: Term

    def run(
        self, rules: Mapping[Series, tuple[Rule, ...]], now: datetime, closed_until: Mapping[str, datetime]
    ) -> list[EventRow]:
        """The events that follow from the verdicts of these series, and of those with a problem; stored on return.

        `closed_until` is the watermark of each lane.
        """
        with self.term.problem_lock:
            events = self._events(rules, now, closed_until)
            self.database.insert("problem_events", events)
        return events

    def _events(
        self, rules: Mapping[Series, tuple[Rule, ...]], now: datetime, closed_until: Mapping[str, datetime]
    ) -> list[EventRow]:
        watched = {(series, aspect_of(rule)): rule for series, found in rules.items() for rule in found}
        unresolved = load_problems(self.database, states=("pending", "open"), every_episode=True)
        found: list[EventRow | None] = []
        closed = min(closed_until.values(), default=now)
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
            step = series_gone(kind, problem, self.settings.of(problem.app), now, closed)
            if step is not None:
                found.append(end_event(problem, kind, step, self.term.epoch))
        verdicts = self._verdicts(watched, now)
        episodes = self._episodes(watched, verdicts, unresolved)
        for (series, _), rule in watched.items():
            known = sorted(episodes.get(problem_id(*key_of_series(series, rule)), ()), key=lambda e: e.episode)
            closed = closed_until.get(rule.metric_ref.evaluator.lane, now)
            judged = verdicts.get((rule.rule_id, series), {})
            found.append(
                next_event(series, rule, judged, known, self.settings, now, closed, self._details, self.term.epoch)
            )
        told = {event.problem_id for event in found if event is not None}
        found += [
            flap_timeout_event(problem, self.settings, now, self.term.epoch)
            for problem in unresolved
            if problem.problem_id not in told
        ]
        return [event for event in found if event is not None]

    def _episodes(
        self,
        watched: Mapping[tuple[Series, Aspect], Rule],
        verdicts: Mapping[tuple[str, Series], Mapping[VersionStart, Sequence[Verdict]]],
        unresolved: Iterable[Problem],
    ) -> dict[str, list[Problem]]:
        """Of the problems that are going on and of those that a bad verdict may raise, by id.

        What was before matters to no other: where nothing is bad and nothing goes on, nothing follows.
        """
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
        return timedelta(seconds=self.settings.of(app).gone_after_s)

    def _rule(self, series: Series, aspect: str) -> Rule | None:
        metric = self.metrics.get(series.metric)
        if metric is None:
            return None
        choose = coverage_rule_for if aspect == "coverage" else rule_for
        return choose(series, metric, self.settings)

    def _verdicts(
        self, watched: Mapping[tuple[Series, Aspect], Rule], now: datetime
    ) -> dict[tuple[str, Series], dict[VersionStart, list[Verdict]]]:
        """The last good and bad verdicts of each rule, series and fingerprint, in order of time.

        So many of either that the last ones of both together have no gap.
        """
        if not watched:
            return {}
        limit = verdicts_needed(watched.values())
        pairs = {(series.app, series.environment, series.metric) for series, _ in watched}
        listed = ", ".join(f"({', '.join(sql.text(part) for part in pair)})" for pair in sorted(pairs))
        key = f"rule_id, {', '.join(Series._fields)}, fingerprint"
        rows = self.database.rows(
            f"""
            SELECT {", ".join(Verdict._fields)}, first_start FROM (
                SELECT {", ".join(Verdict._fields)}, min(start) OVER (PARTITION BY {key}) AS first_start
                FROM verdicts FINAL
                WHERE run_id = 'live' AND samples > 0
                    AND rule_id IN {sql.texts(sorted({rule.rule_id for rule in watched.values()}))}
                    AND (app, environment, metric) IN ({listed}) AND end > {{remembered:DateTime64(3, 'UTC')}}
            )
            ORDER BY start DESC LIMIT {limit} BY {key}, breached
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
        judged = evidence.verdict_totals(self.database, series, rule, step.breaching, step.since)
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


def _series(problem: Problem) -> Series:
    return Series(
        problem.app, problem.environment, problem.metric, problem.model, problem.segment, problem.segment_value
    )
