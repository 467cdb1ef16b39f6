"""Turns verdicts into problem events: each happening once, whoever leads and however often it runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from drift.leadership import Term
from drift.problems import facts
from drift.problems.events import Account
from drift.problems.fingerprints import Begun
from drift.problems.folding import load_problems
from drift.problems.following import (
    KINDS,
    REMEMBERED,
    account_under,
    aspect_of,
    ended,
    enough,
    following,
    place_at,
    settled,
)
from drift.problems.gone import gone
from drift.problems.lifecycle import Step, disappeared, told_until
from drift.problems.problem import Aspect, EventRow, Problem, State, problem_id
from drift.problems.wording import Figures
from drift.rules.choose import coverage_rule_for, rule_for
from drift.rules.series import Rule, Series, Verdict
from drift.settings import RuleSettings
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database


@dataclass(frozen=True, slots=True)
class Raiser:
    """Raises problems for one leader's term."""

    database: Database
    metrics: Mapping[str, WatchedMetric]
    settings: RuleSettings
    segments: SegmentValues
    term: Term

    def run(
        self, rules: Mapping[Series, tuple[Rule, ...]], now: datetime, closed_until: Mapping[str, datetime]
    ) -> list[EventRow]:
        """The events that follow from the verdicts of these series, and of those with a problem; stored on return.

        `closed_until` is the watermark of each lane.
        """
        with self.term.deciding:
            events = self._follows(rules, now, closed_until)
            self.database.insert("problem_events", events)
        return events

    def _follows(
        self, rules: Mapping[Series, tuple[Rule, ...]], now: datetime, closed_until: Mapping[str, datetime]
    ) -> list[EventRow]:
        watched = {(series, aspect_of(rule)): rule for series, found in rules.items() for rule in found}
        going = load_problems(self.database, states=("pending", "open"), every_episode=True)
        found: list[EventRow | None] = []
        closed = min(closed_until.values(), default=now)
        given_up = self._given_up(going, closed)
        for problem in going:
            kind = KINDS.get(problem.aspect)
            if kind is None:
                continue
            series = _series(problem)
            rule = self._rule(series, problem.aspect)
            if rule is not None and series not in given_up:
                watched.setdefault((series, aspect_of(rule)), rule)
                continue
            if rule is not None:
                watched.pop((series, aspect_of(rule)), None)
            step = disappeared(kind, problem, self.settings.of(problem.app), now, closed)
            if step is not None:
                found.append(ended(problem, kind, step, self.term.epoch))
        verdicts = self._verdicts(watched, now)
        episodes = self._episodes(watched, verdicts, going)
        for (series, _), rule in watched.items():
            known = sorted(episodes.get(problem_id(*place_at(series, rule)), ()), key=lambda e: e.episode)
            closed = closed_until.get(rule.watched.evaluator.lane, now)
            judged = verdicts.get((rule.rule_id, series), {})
            found.append(
                following(series, rule, judged, known, self.settings, now, closed, self._account, self.term.epoch)
            )
        told = {event.problem_id for event in found if event is not None}
        found += [
            settled(problem, self.settings, now, self.term.epoch) for problem in going if problem.problem_id not in told
        ]
        return [event for event in found if event is not None]

    def _episodes(
        self,
        watched: Mapping[tuple[Series, Aspect], Rule],
        verdicts: Mapping[tuple[str, Series], Mapping[Begun, Sequence[Verdict]]],
        going: Iterable[Problem],
    ) -> dict[str, list[Problem]]:
        """Of the problems that are going on and of those that a bad verdict may raise, by id.

        What was before matters to no other: where nothing is bad and nothing goes on, nothing follows.
        """
        ids = {problem.problem_id for problem in going}
        for (series, _), rule in watched.items():
            judged = verdicts.get((rule.rule_id, series), {})
            if any(verdict.breached for of_one in judged.values() for verdict in of_one):
                ids.add(problem_id(*place_at(series, rule)))
        found: dict[str, list[Problem]] = {}
        known = load_problems(self.database, states=get_args(State), ids=ids, every_episode=True) if ids else ()
        for problem in known:
            found.setdefault(problem.problem_id, []).append(problem)
        return found

    def _given_up(self, going: Iterable[Problem], closed: datetime) -> set[Series]:
        voices = ((problem, problem.voices.get(KINDS.get(problem.aspect, ""))) for problem in going)
        told = {_series(problem): told_until(voice) for problem, voice in voices if voice is not None}
        return gone(self.database, told, closed, self._gone_after, REMEMBERED)

    def _gone_after(self, app: str) -> timedelta:
        return timedelta(seconds=self.settings.of(app).gone_after_s)

    def _rule(self, series: Series, aspect: str) -> Rule | None:
        metric = self.metrics.get(series.metric)
        if metric is None:
            return None
        choose = coverage_rule_for if aspect == "coverage" else rule_for
        return choose(series, metric, self.settings)

    def _verdicts(
        self, watched: Mapping[tuple[Series, Aspect], Rule], now: datetime
    ) -> dict[tuple[str, Series], dict[Begun, list[Verdict]]]:
        """The last good and bad verdicts of each rule, series and fingerprint, in order of time.

        So many of either that the last ones of both together have no gap.
        """
        if not watched:
            return {}
        most = enough(watched.values())
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
            ORDER BY start DESC LIMIT {most} BY {key}, breached
            """,
            {"remembered": now - REMEMBERED},
        )
        found: dict[tuple[str, Series], dict[Begun, list[Verdict]]] = {}
        for row in reversed(rows):
            verdict = Verdict(**{name: row[name] for name in Verdict._fields})
            begun = Begun(row["first_start"].timestamp(), verdict.fingerprint)
            found.setdefault((verdict.rule_id, verdict.series), {}).setdefault(begun, []).append(verdict)
        return found

    def _account(self, series: Series, rule: Rule, step: Step) -> Account:
        judged = facts.judged(self.database, series, rule, step.bad, step.since)
        figures = facts.figures(self.database, series, rule, step.bad, step.since, judged)
        examples = facts.examples(self.database, series, rule, self.segments, step.since, step.until)
        attributes = self._attributes(series, rule, figures, step)
        return account_under(series, rule, figures, step.since, self.settings, attributes, examples)

    def _attributes(self, series: Series, rule: Rule, figures: Figures, step: Step) -> dict[str, Any]:
        newest = step.bad[-1]
        return {
            "rule": rule.kind,
            "window": {"start": newest.start.isoformat(), "end": newest.end.isoformat()},
            "window_value": newest.value,
            "value": figures.value,
            "baseline": figures.baseline,
            "threshold": newest.threshold,
            "min": rule.least,
            "max": rule.greatest,
            "limit": rule.limit if rule.kind in ("share", "coverage") else None,
            "sample_size": figures.samples,
            "wrong": figures.wrong,
            "traffic": figures.traffic,
            "effect_size": figures.effect_size,
            "reasons": list(figures.reasons),
            "fingerprint": newest.fingerprint,
            "prompt_versions": list(facts.prompt_versions(self.database, series, step.since, step.until)),
            "since": step.since.isoformat(),
            "until": step.until.isoformat(),
            "revision": newest.revision,
            "incomplete": any(v.incomplete for v in step.bad),
        }


def _series(problem: Problem) -> Series:
    return Series(
        problem.app, problem.environment, problem.metric, problem.model, problem.segment, problem.segment_value
    )
